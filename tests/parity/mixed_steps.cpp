// Whole training steps in bf16_mixed on two backends, call by call. The rule's updates are bounded, and smaller than what bf16 can tell:
// a weight that a backend rounds to the other neighbour is off by the same everywhere it is used, which deviations do not know.
#include <gyre/parity/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include "allowed_share.hpp"
#include "step_model.hpp"

namespace gyre_test {

namespace parity = gyre::parity;

TEST_CASE("training steps in bf16_mixed agree, with every call in between", "[parity][threads][bf16]") {
  const gyre::index lengths[] = {1, 7, 0, 33};
  auto input = parity::make_step_input<Small, float>(lengths, three_steps, gyre::seed{3}, 3);
  for (float& x : input.parameters) x = gyre::bfloat16(x);
  const parity::twice left{record_mixed_on_reference(input), record_mixed_on_reference(input)};
  const parity::twice right{record_mixed_on_cpu(input), record_mixed_on_cpu(input)};
  const recording expected = record_mixed_in_bounded_numbers(input);
  const parity::report r = parity::compare_recordings("three steps", left, right, expected);
  CHECK_THAT(r, parity::agrees());
  CHECK(r.repeatable_left);
  CHECK(r.repeatable_right);
  CHECK(r.worst.excess > 0);

  // What is allowed says something, to the last step: a part of the gradient, and of the weights less than bf16 can tell.
  for (const parity::recorded_call& call : expected)
    if (call.label == "gradient" || call.label == "parameters") {
      const long double share = allowed_share(call);
      CAPTURE(call.label, static_cast<double>(share));
      CHECK(share <= (call.label == "gradient" ? 0.25L : 0.5L / 256));
    }
}

}  // namespace gyre_test
