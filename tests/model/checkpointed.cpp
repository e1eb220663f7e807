// Bodies that keep only their input, and models without prelude and coda.
#include <gyre/layers/expert_attention.hpp>

#include "support/gradients.hpp"
#include "support/variants.hpp"

namespace {

using namespace gyre_test::variants;
// SandwichGrouped with its layers written out and a body that keeps only its input.
using G = Block<gyre::sandwich, gain::learned, grouped, half>;
struct Checkpointed
    : gyre::model<grouped, gyre::prelude<G>, gyre::recurrent<gyre::checkpoint<gyre::chain<G, G>>>, gyre::coda<G>> {};
/// With losses of routers.
struct Balanced
    : gyre::model<
          grouped,
          gyre::recurrent<gyre::checkpoint<gyre::residual<
              gyre::pre_norm,
              gyre::expert_attention<
                  grouped,
                  gyre::experts{.count = 3, .active = 2, .router_width = 4, .balance_weight = 0.7, .z_weight = 0.3}>>>>> {};
struct NoEnds : gyre::model<grouped, gyre::recurrent<G>> {};

}  // namespace

TEMPLATE_TEST_CASE("gradients of checkpointed bodies and of a bare recurrence agree with the complex step", "", Checkpointed,
                   NoEnds) {
  gyre_test::gradient_check<TestType> check({3, 5});
  for (int r : {1, 2, 5}) check.check_directions(r, 3);
}

TEST_CASE("losses of routers in a checkpointed body are counted once, although it runs again in backward") {
  const gyre::network<Balanced, gyre::reference, gyre::fp64> net(gyre::reference{}, gyre::seed{5});
  gyre::pass_memory<gyre::reference> memory{{}};
  const std::vector<gyre::token> ids{1, 2, 3, 4};
  std::vector<double> gradient(static_cast<std::size_t>(Balanced::parameter_count));
  const auto loss = [&](double* to) {
    return gyre::run_pass(net, memory, gyre::batch_layout::uniform(1, 4), ids, ids, {}, {1, 2}, 1, to).auxiliary_loss;
  };
  CHECK(loss(nullptr) > 0);
  CHECK(loss(gradient.data()) == loss(nullptr));
}

TEST_CASE("a checkpointed body has bitwise the gradient of a stored one") {
  gyre_test::gradient_check<SandwichGrouped> stored({3, 5});
  gyre_test::gradient_check<Checkpointed> again({3, 5});
  REQUIRE(gyre::parameter_table<SandwichGrouped>::names() == gyre::parameter_table<Checkpointed>::names());
  for (const gyre::depth_draw draw : {gyre::depth_draw{0, 3}, gyre::depth_draw{4, 2}})
    CHECK(stored.backward(draw) == again.backward(draw));
}
