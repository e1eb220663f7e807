#include "suite.hpp"

using gyre::operation;

TEST_CASE("parity of the reference and the cpu backend: operations on rows and products, float", "[parity][threads]") {
  gyre_test::check_suite<float, operation{}, operation::attention>();
}
