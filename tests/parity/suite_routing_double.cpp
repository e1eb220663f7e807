// The calls of suite_routing_float.cpp, with memory of another size. [no_sanitizer]
#include "suite.hpp"

using gyre::operation;

TEST_CASE("parity of the reference and the cpu backend: routing, losses and updates, double", "[parity][threads]") {
  gyre_test::check_suite<double, operation::route, operation::count>();
}
