// One side of what mixtures.cpp compares, in a unit of its own for the compiler's sake. [threads]
#include "mixture_model.hpp"

namespace gyre_test {

recording mixture_in_bounded_numbers(const step_input<float>& input) {
  return gyre::parity::record_steps<Dreamer, gyre::parity::bounded_precision<float>>(gyre::reference(), input, gyre::adamw{});
}

}  // namespace gyre_test
