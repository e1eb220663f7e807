// Bodies that keep only their input, and models without prelude and coda.
#include "support/gradients.hpp"
#include "support/variants.hpp"

namespace {

using namespace gyre_test::variants;
// SandwichGrouped with its layers written out and a body that keeps only its input.
using G = Block<gyre::sandwich, gain::learned, grouped, half>;
struct Checkpointed
    : gyre::model<grouped, gyre::prelude<G>, gyre::recurrent<gyre::checkpoint<gyre::chain<G, G>>>, gyre::coda<G>> {};
struct NoEnds : gyre::model<grouped, gyre::recurrent<G>> {};

}  // namespace

TEMPLATE_TEST_CASE("gradients of checkpointed bodies and of a bare recurrence agree with the complex step", "", Checkpointed,
                   NoEnds) {
  gyre_test::gradient_check<TestType> check({3, 5});
  for (int r : {1, 2, 5}) check.check_directions(r, 3);
}

TEST_CASE("a checkpointed body has bitwise the gradient of a stored one") {
  gyre_test::gradient_check<SandwichGrouped> stored({3, 5});
  gyre_test::gradient_check<Checkpointed> again({3, 5});
  REQUIRE(gyre::parameter_table<SandwichGrouped>::names() == gyre::parameter_table<Checkpointed>::names());
  for (const gyre::depth_draw draw : {gyre::depth_draw{0, 3}, gyre::depth_draw{4, 2}})
    CHECK(stored.backward(draw) == again.backward(draw));
}
