#pragma once

#include "models.hpp"

namespace gyre_test {

template <class Model, class P>
expected_steps steps_in_bounded_numbers(const input& from) {
  using bounds = gyre::parity::bounded_precision<gyre::parameter_t<P>>;
  gyre::parity::choosing device;
  recording calls = gyre::parity::record_steps<Model, bounds>(device, from, rule_of<Model, P>());
  return {std::move(calls), device.choices()};
}

}  // namespace gyre_test
