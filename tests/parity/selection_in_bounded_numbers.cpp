#include "selection_sides.hpp"

namespace gyre_test {

chosen_pass mixture_with_choices(const step_input<float>& input) {
  gyre::parity::choosing device;
  recording calls = gyre::parity::record_steps<Dreamer, gyre::parity::bounded_precision<float>>(device, input, gyre::adamw{});
  return {std::move(calls), device.choices()};
}

}  // namespace gyre_test
