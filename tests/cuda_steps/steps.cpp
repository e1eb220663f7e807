// Whole training steps of the cuda backend's kernels on the interpreter: they equal the cpu backend's, and themselves in every
// order of threads. Dense products are the stand-in's.
#include <gyre/parity/catch.hpp>

#include <set>
#include <string>

#include "models.hpp"

namespace gyre_test {

namespace parity = gyre::parity;
using gyre::simt::thread_order;

namespace {

// Where every access is watched one step is enough; three with the optimiser otherwise.
const bool watched = gyre::simt::machine::watches_accesses();
const int taken = watched ? 1 : 3;

template <class Model>
void check_steps(gyre::depth_draw draw, int steps, std::set<gyre::operation>& seen) {
  const input from = make_input<Model>(draw, steps);
  const expected_steps expected = steps_in_bounded_numbers<Model>(from);
  const steps_of_backend cpu = steps_on_cpu<Model>(from, expected.choices);
  const steps_of_backend forward = steps_on_cuda<Model>(from, expected.choices, thread_order::forward);
  // The race detector does not need another order to see that threads are not ordered.
  const auto in_order = [&](thread_order order) {
    return watched ? forward : steps_on_cuda<Model>(from, expected.choices, order);
  };
  const steps_of_backend reverse = in_order(thread_order::reverse), random = in_order(thread_order::random);
  for (const steps_of_backend* other : {&reverse, &random}) {
    const parity::report r = parity::compare_recordings(std::to_string(steps) + " steps", {cpu.calls, cpu.calls},
                                                        {forward.calls, other->calls}, expected.calls);
    CHECK_THAT(r, parity::agrees());
    CHECK(r.repeatable_right);
    CHECK(r.worst.excess > 0);
  }
  for (const steps_of_backend* side : {&cpu, &forward, &reverse, &random}) {
    CAPTURE(side->replayed.rows, side->replayed.replayed, static_cast<double>(side->replayed.smallest_gap));
    CHECK(side->replayed.wrong == 0);
    CHECK(side->replayed.few());
  }
  for (const parity::recorded_call& call : expected.calls) seen.insert(call.of);
}

}  // namespace

TEST_CASE("training steps of a model like Huginn, five heads", "[cuda_kernels]") {
  std::set<gyre::operation> seen;
  check_steps<huginn_like<5>>({1, 2}, taken, seen);
  CHECK(seen.contains(gyre::operation::attention_backward));
}
TEST_CASE("training steps of a model like Huginn, five query heads on one", "[cuda_kernels]") {
  std::set<gyre::operation> seen;
  check_steps<huginn_like<1>>({1, 2}, taken, seen);
  CHECK(seen.contains(gyre::operation::adamw_update));
}
TEST_CASE("training steps of a model like Dreamer", "[cuda_kernels]") {
  std::set<gyre::operation> seen;
  check_steps<dreamer_like>({0, 3}, taken, seen);
  for (const gyre::operation of :
       {gyre::operation::route, gyre::operation::route_backward, gyre::operation::group_pairs, gyre::operation::spread,
        gyre::operation::collect, gyre::operation::collect_backward, gyre::operation::grouped_product,
        gyre::operation::grouped_product_weight_gradient, gyre::operation::depth_attention_backward, gyre::operation::rotate})
    CHECK(seen.contains(of));
}

}  // namespace gyre_test
