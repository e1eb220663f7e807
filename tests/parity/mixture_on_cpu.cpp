// One side of what mixtures.cpp compares, in a unit of its own for the compiler's sake. [threads]
#include <gyre/backend/cpu.hpp>

#include "mixture_model.hpp"

namespace gyre_test {

recording mixture_on_cpu(const step_input<float>& input) {
  return gyre::parity::record_steps<Dreamer, gyre::fp32>(gyre::cpu(2), input, gyre::adamw{});
}

}  // namespace gyre_test
