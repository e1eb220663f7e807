// One side of what steps.cpp compares, in a unit of its own for the compiler's sake. [threads]
#include "step_model.hpp"

namespace gyre_test {

template <>
recording record_in_bounded_numbers<float>(const step_input<float>& input) {
  return gyre::parity::record_steps<Small, gyre::parity::bounded_precision<float>>(gyre::reference(), input, gyre::adamw{});
}
template <>
recording record_in_bounded_numbers<double>(const step_input<double>& input) {
  return gyre::parity::record_steps<Small, gyre::parity::bounded_precision<double>>(gyre::reference(), input, gyre::adamw{});
}

}  // namespace gyre_test
