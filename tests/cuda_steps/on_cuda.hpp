#pragma once

#include <gyre/backend/cuda.hpp>

#include "models.hpp"

namespace gyre_test {

template <class Model, class P>
steps_of_backend steps_on_cuda(const input& from, const gyre::parity::selections& choices, gyre::simt::thread_order order) {
  gyre::parity::replaying device(
      gyre::simulated_cuda(std::make_shared<gyre::simulated_device>(gyre::simt::options{.order = order})), choices);
  recording calls = gyre::parity::record_steps<Model, P>(device, from, rule_of<Model, P>());
  return {std::move(calls), device.counts()};
}

}  // namespace gyre_test
