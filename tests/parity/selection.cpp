// Choices of experts near ties: replayed where rounding decides, left and reported where it does not.
#include <gyre/parity/catch.hpp>

#include <array>

#include <gyre/parity/selection.hpp>

#include "mixture_model.hpp"
#include "selection_sides.hpp"

namespace gyre_test {

namespace parity = gyre::parity;

TEST_CASE("a choice that rounding decides is replayed, any other is a fault", "[parity]") {
  constexpr std::array<gyre::index, 3> lengths{7, 1, 33};
  const auto input = parity::make_step_input<Dreamer, float>(lengths, {0, 3}, gyre::seed{3}, 1);
  const chosen_pass expected = mixture_with_choices(input);
  REQUIRE_FALSE(expected.choices.empty());

  const replayed_pass same = mixture_replaying(input, expected.choices, 0);
  CHECK(same.counts.rows > 0);
  CHECK(same.counts.wrong == 0);
  CHECK(same.counts.few());
  CHECK(same.counts.smallest_gap < std::numeric_limits<long double>::infinity());
  CHECK_THAT(parity::compare_recordings("as it is", {same.calls, same.calls}, {same.calls, same.calls}, expected.calls),
             parity::agrees());

  // Selection scores moved by far more than rounding: rows choose otherwise, and are not helped.
  const replayed_pass moved = mixture_replaying(input, expected.choices, 0.5f);
  CHECK(moved.counts.wrong > 0);
  CHECK_THAT(parity::compare_recordings("moved", {same.calls, same.calls}, {moved.calls, moved.calls}, expected.calls),
             parity::fails(parity::fault::tolerance));

  // The same choices, said to be decided by rounding: now rows that choose otherwise take the reference's experts, and the rest of
  // the pass agrees again, gates and gradients included.
  parity::selections unsure = expected.choices;
  for (parity::selection& s : unsure) s.bounds = s.gaps;
  const replayed_pass helped = mixture_replaying(input, unsure, 0.5f);
  CHECK(helped.counts.wrong == 0);
  CHECK(helped.counts.replayed > 0);
  CHECK_FALSE(helped.counts.few());
  CHECK_THAT(parity::compare_recordings("helped", {same.calls, same.calls}, {helped.calls, helped.calls}, expected.calls),
             parity::agrees());
}

}  // namespace gyre_test
