// Trials of chosen sizes, where the drawn ones do not reach every path of a kernel.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include "suite.hpp"

namespace gyre_test {

using sizes = std::initializer_list<std::pair<std::string_view, gyre::index>>;

/// One trial; sizes that are not named are 0.
template <class T, gyre::operation Op>
void check_trial(sizes chosen) {
  gyre::reference left;
  shuffled_cuda right;
  gyre::parity::trial t{Op, std::string(gyre::parity::type_name<T>()), 7, {}};
  for (const auto& [name, value] : chosen) t.set(name, value);
  const gyre::parity::report r = gyre::parity::run_trial<Op, T>(left, right, t);
  CHECK_THAT(r, gyre::parity::agrees());
}

}  // namespace gyre_test
