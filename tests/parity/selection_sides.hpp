// The sides of what selection.cpp compares, in units of their own for the compiler's sake.
#pragma once

#include <gyre/parity/selection.hpp>

#include "mixture_model.hpp"

namespace gyre_test {

struct chosen_pass {
  recording calls;
  gyre::parity::selections choices;
};
chosen_pass mixture_with_choices(const step_input<float>& input);

struct replayed_pass {
  recording calls;
  gyre::parity::replay_counts counts;
};
/// `moved` is added to the selection scores of every second expert.
replayed_pass mixture_replaying(const step_input<float>& input, const gyre::parity::selections& choices, float moved);

}  // namespace gyre_test
