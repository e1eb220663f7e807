#include "suite.hpp"

using gyre::operation;

TEST_CASE("parity of the reference and the cpu backend: routing, losses and updates, float", "[parity][threads]") {
  gyre_test::check_suite<float, operation::route, operation::count>();
}
