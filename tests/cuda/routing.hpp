// Trials of routing for one type; each type is a test unit of its own.
#pragma once

#include "suite.hpp"

namespace gyre_test {

template <class T>
void check_routing() {
  using gyre::operation;
  check_operations<T, operation::route, operation::route_backward, operation::group_pairs, operation::spread,
                   operation::collect, operation::collect_backward, operation::router_loss, operation::router_loss_backward>();
}

}  // namespace gyre_test
