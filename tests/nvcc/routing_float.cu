#include "suite.hpp"

using gyre::operation;

TEST_CASE("cuda on a GPU agrees with the reference: routing, loss, states and updates, float", "[cuda]") {
  gyre_test::check_suite<float, operation::route, operation::count>();
}
