// One trial of given sizes, where those that the harness draws do not reach every border of a kernel.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "suite.hpp"

namespace gyre_test {

template <class T, gyre::operation Op>
void check_trial(std::initializer_list<std::pair<std::string, gyre::index>> sizes) {
  namespace parity = gyre::parity;
  gyre::reference left;
  shuffled_cuda right;
  CHECK_THAT((parity::run_trial<Op, T>(left, right, {Op, std::string(parity::type_name<T>()), 7, sizes})), parity::agrees());
}

}  // namespace gyre_test
