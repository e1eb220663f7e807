// One side of what mixed_steps.cpp compares, in a unit of its own for the compiler's sake. [threads]
#include <gyre/backend/cpu.hpp>

#include <gyre/train/huginn_adam.hpp>

#include "step_model.hpp"

namespace gyre_test {

recording record_mixed_on_cpu(const step_input<float>& input) {
  return gyre::parity::record_steps<Small, gyre::bf16_mixed>(gyre::cpu(2), input, gyre::huginn_adam{});
}

}  // namespace gyre_test
