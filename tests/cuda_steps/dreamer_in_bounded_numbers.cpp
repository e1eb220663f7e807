#include "models.hpp"

namespace gyre_test {

template <>
expected_steps steps_in_bounded_numbers<dreamer_like>(const input& from) {
  gyre::parity::choosing device;
  recording calls =
      gyre::parity::record_steps<dreamer_like, gyre::parity::bounded_precision<float>>(device, from, gyre::adamw{});
  return {std::move(calls), device.choices()};
}

}  // namespace gyre_test
