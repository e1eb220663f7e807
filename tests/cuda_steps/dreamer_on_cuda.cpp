#include <gyre/backend/cuda.hpp>

#include "models.hpp"

namespace gyre_test {

template <>
steps_of_backend steps_on_cuda<dreamer_like>(const input& from, const gyre::parity::selections& choices,
                                             gyre::simt::thread_order order) {
  gyre::parity::replaying device(
      gyre::simulated_cuda(std::make_shared<gyre::simulated_device>(gyre::simt::options{.order = order})), choices);
  recording calls = gyre::parity::record_steps<dreamer_like, gyre::fp32>(device, from, gyre::adamw{});
  return {std::move(calls), device.counts()};
}

}  // namespace gyre_test
