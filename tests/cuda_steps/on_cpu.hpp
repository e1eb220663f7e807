#pragma once

#include <gyre/backend/cpu.hpp>

#include "models.hpp"

namespace gyre_test {

template <class Model, class P>
steps_of_backend steps_on_cpu(const input& from, const gyre::parity::selections& choices) {
  gyre::parity::replaying device(gyre::cpu(2), choices);
  recording calls = gyre::parity::record_steps<Model, P>(device, from, rule_of<Model, P>());
  return {std::move(calls), device.counts()};
}

}  // namespace gyre_test
