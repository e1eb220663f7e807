// One side of what steps.cpp compares, in a unit of its own for the compiler's sake. [threads]
#include "step_model.hpp"

namespace gyre_test {

template <>
recording record_on_reference<float>(const step_input<float>& input) {
  return gyre::parity::record_steps<Small, gyre::fp32>(gyre::reference(), input, gyre::adamw{});
}
template <>
recording record_on_reference<double>(const step_input<double>& input) {
  return gyre::parity::record_steps<Small, gyre::fp64>(gyre::reference(), input, gyre::adamw{});
}

}  // namespace gyre_test
