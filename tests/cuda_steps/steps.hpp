// Training steps of one model on the cpu backend and on the cuda backend's kernels, compared: they equal each other within the
// tolerance of the whole, and the kernels themselves in every order of threads. Dense products are the stand-in's.
#pragma once

#include <gyre/parity/catch.hpp>

#include <set>
#include <string>
#include <type_traits>

#include "models.hpp"
#include "parity/allowed_share.hpp"

namespace gyre_test {

namespace parity = gyre::parity;
using gyre::simt::thread_order;

// Where every access is watched one step is enough; three with the optimiser otherwise.
inline const bool watched = gyre::simt::machine::watches_accesses();
inline const int taken = watched ? 1 : 3;

template <class Model, class P>
void check_steps(gyre::depth_draw draw, std::set<gyre::operation>& seen) {
  const input from = make_input<Model, P>(draw, taken);
  const expected_steps expected = steps_in_bounded_numbers<Model, P>(from);
  const steps_of_backend cpu = steps_on_cpu<Model, P>(from, expected.choices);
  const steps_of_backend forward = steps_on_cuda<Model, P>(from, expected.choices, thread_order::forward);
  // The race detector does not need another order to see that threads are not ordered.
  const auto in_order = [&](thread_order order) {
    return watched ? forward : steps_on_cuda<Model, P>(from, expected.choices, order);
  };
  const steps_of_backend reverse = in_order(thread_order::reverse), random = in_order(thread_order::random);
  for (const steps_of_backend* other : {&reverse, &random}) {
    const parity::report r = parity::compare_recordings(std::to_string(taken) + " steps", {cpu.calls, cpu.calls},
                                                        {forward.calls, other->calls}, expected.calls);
    CHECK_THAT(r, parity::agrees());
    CHECK(r.repeatable_right);
    CHECK(r.worst.excess > 0);
  }
  constexpr bool in_bf16 = std::is_same_v<P, gyre::bf16_mixed>;
  const double rerouted = in_bf16 ? 2e-2 : 1e-3;  // attention mixtures, section 4
  for (const steps_of_backend* side : {&cpu, &forward, &reverse, &random}) {
    CAPTURE(side->replayed.rows, side->replayed.replayed, static_cast<double>(side->replayed.smallest_gap));
    CHECK(side->replayed.wrong == 0);
    CHECK(side->replayed.few(rerouted));
  }
  for (const parity::recorded_call& call : expected.calls) {
    seen.insert(call.of);
    // What is allowed says something, to the last step: of the mixture in bf16 only until its third step of the recurrence.
    const bool gradient = call.label == "gradient";
    if ((!gradient && call.label != "parameters") || (std::is_same_v<Model, dreamer_like> && in_bf16)) continue;
    const long double share = allowed_share(call);
    CAPTURE(call.label, static_cast<double>(share));
    CHECK(share <= (gradient ? in_bf16 ? 0.25L : 0.05L : in_bf16 ? 0.5L / 256 : 1e-4L));
  }
}

inline constexpr gyre::depth_draw three_steps{1, 2};  // of the recurrence; one without gradients

}  // namespace gyre_test
