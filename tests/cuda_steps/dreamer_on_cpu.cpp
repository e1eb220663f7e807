#include <gyre/backend/cpu.hpp>

#include "models.hpp"

namespace gyre_test {

template <>
steps_of_backend steps_on_cpu<dreamer_like>(const input& from, const gyre::parity::selections& choices) {
  gyre::parity::replaying device(gyre::cpu(2), choices);
  recording calls = gyre::parity::record_steps<dreamer_like, gyre::fp32>(device, from, gyre::adamw{});
  return {std::move(calls), device.counts()};
}

}  // namespace gyre_test
