// Training steps of a mixture: choices of experts among the calls.
#include <gyre/parity/catch.hpp>

#include <array>
#include <set>

#include "mixture_model.hpp"

namespace gyre_test {

namespace parity = gyre::parity;

TEST_CASE("training steps of a mixture agree, with every choice of experts", "[parity][threads]") {
  constexpr std::array<gyre::index, 4> lengths{1, 7, 0, 33};
  const auto input = parity::make_step_input<Dreamer, float>(lengths, {0, 3}, gyre::seed{3}, 2);
  const parity::twice left{mixture_on_reference(input), mixture_on_reference(input)},
      right{mixture_on_cpu(input), mixture_on_cpu(input)};
  const recording expected = mixture_in_bounded_numbers(input);
  const parity::report r = parity::compare_recordings("two steps", left, right, expected);
  CHECK_THAT(r, parity::agrees());
  std::set<gyre::operation> seen;
  for (const parity::recorded_call& call : expected) seen.insert(call.of);
  for (const gyre::operation of :
       {gyre::operation::route, gyre::operation::route_backward, gyre::operation::group_pairs, gyre::operation::spread,
        gyre::operation::collect, gyre::operation::collect_backward, gyre::operation::grouped_product,
        gyre::operation::grouped_product_weight_gradient, gyre::operation::depth_attention_backward, gyre::operation::rotate})
    CHECK(seen.contains(of));
}

}  // namespace gyre_test
