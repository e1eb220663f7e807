#include "suite.hpp"

using gyre::operation;

TEST_CASE("parity of the reference and the cpu backend: attention, float", "[parity][threads]") {
  gyre_test::check_suite<float, operation::attention, operation::route>();
}
