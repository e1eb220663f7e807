// Calls of routing on cuda of chosen sizes: those at which kernels take another path, or blocks and tiles end.
#pragma once

#include "suite.hpp"

#include <initializer_list>
#include <string_view>
#include <utility>

namespace gyre_test {

template <gyre::operation Op, class T>
void check_sizes(std::initializer_list<std::pair<std::string_view, gyre::index>> sizes) {
  namespace parity = gyre::parity;
  parity::trial t{Op, std::string(parity::type_name<T>()), 7, {}};
  for (const auto& [name, value] : sizes) t.set(name, value);
  gyre::reference left;
  shuffled_cuda right;
  INFO(t.text());
  CHECK_THAT((parity::run_trial<Op, T>(left, right, t)), parity::agrees());
}

}  // namespace gyre_test
