// Whole training steps on two backends, call by call; and a step with a fault in one of its calls.
#include <gyre/parity/catch.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "allowed_share.hpp"
#include "step_model.hpp"

namespace gyre_test {

namespace parity = gyre::parity;
using gyre::index;

namespace {

template <class T>
step_input<T> input_of(std::initializer_list<index> lengths, int steps) {
  return parity::make_step_input<Small, T>(std::span(lengths.begin(), lengths.size()), three_steps, gyre::seed{3}, steps);
}
std::size_t place_of(const recording& calls, gyre::operation of) {
  for (std::size_t n = 0; n < calls.size(); ++n)
    if (calls[n].of == of) return n;
  return calls.size();
}

}  // namespace

TEMPLATE_TEST_CASE("training steps agree, with every call in between", "[parity][threads]", float, double) {
  using T = TestType;
  const auto input = input_of<T>({1, 7, 0, 33}, 3);
  const parity::twice left{record_on_reference<T>(input), record_on_reference<T>(input)};
  const parity::twice right{record_on_cpu<T>(input), record_on_cpu<T>(input)};
  const recording expected = record_in_bounded_numbers<T>(input);
  const parity::report r = parity::compare_recordings("three steps", left, right, expected);
  CHECK_THAT(r, parity::agrees());
  CHECK(r.repeatable_left);
  CHECK(r.repeatable_right);
  CHECK(r.worst.excess > 0);

  // What is allowed says something, to the last step: parts of the gradient and of the weights, not numbers as large as they are.
  const long double eps = std::numeric_limits<T>::epsilon();
  for (const parity::recorded_call& call : expected)
    if (call.label == "gradient" || call.label == "parameters") {
      const long double share = allowed_share(call);
      CAPTURE(call.label, static_cast<double>(share));
      CHECK(share <= 4000 * eps);
    }

  // A fault in one call: it is the one that is named, whatever came out wrong after it.
  for (const gyre::operation of :
       {gyre::operation::rotary_backward, gyre::operation::attention, gyre::operation::adamw_update}) {
    parity::twice wrong = right;
    const std::size_t at = place_of(wrong.first, of);
    REQUIRE(at < wrong.first.size());
    for (recording* calls : {&wrong.first, &wrong.second})
      for (std::size_t n = at; n < calls->size(); ++n)
        for (parity::tensor& t : (*calls)[n].outputs)
          if (t.size() > 0) {
            T x;
            std::memcpy(&x, t.bytes.data(), sizeof x);
            x += T(1);
            std::memcpy(t.bytes.data(), &x, sizeof x);
          }
    const parity::report found = parity::compare_recordings("one step", left, wrong, expected);
    REQUIRE_FALSE(found.passed());
    CHECK(found.findings.front().whose == parity::side::right);
    CHECK_THAT(found.findings.front().text,
               Catch::StartsWith("first at call " + std::to_string(at) + " of " + std::to_string(expected.size()) + ", " +
                                 std::string(gyre::operation_names[static_cast<std::size_t>(of)])));
  }
}

}  // namespace gyre_test
