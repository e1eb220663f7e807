// One side of what steps.cpp compares, in a unit of its own for the compiler's sake. [threads]
#include <gyre/backend/cpu.hpp>

#include "step_model.hpp"

namespace gyre_test {

template <>
recording record_on_cpu<float>(const step_input<float>& input) {
  return gyre::parity::record_steps<Small, gyre::fp32>(gyre::cpu(2), input, gyre::adamw{});
}

}  // namespace gyre_test
