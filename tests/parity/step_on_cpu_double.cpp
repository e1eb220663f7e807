// One side of what steps.cpp compares, in a unit of its own for the compiler's sake. [threads]
#include <gyre/backend/cpu.hpp>

#include "step_model.hpp"

namespace gyre_test {

template <>
recording record_on_cpu<double>(const step_input<double>& input) {
  return gyre::parity::record_steps<Small, gyre::fp64>(gyre::cpu(2), input, gyre::adamw{});
}

}  // namespace gyre_test
