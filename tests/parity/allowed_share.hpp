// Whether a comparison of recordings says something.
#pragma once

#include <algorithm>
#include <cmath>

#include <gyre/parity/record.hpp>

namespace gyre_test {

/// By how much the numbers of a call may be off in all, as a part of what they are in all.
inline long double allowed_share(const gyre::parity::recorded_call& call) {
  const gyre::parity::expectation& e = call.expected.front();
  long double size = 0, allowed = 0;
  for (std::size_t i = 0; i < e.values.size(); ++i) {
    size += std::fabs(e.values[i]);
    allowed += (std::min)(e.tolerances[i], gyre::parity::expectation::deviations * e.likely[i]);
  }
  return allowed / size;
}

}  // namespace gyre_test
