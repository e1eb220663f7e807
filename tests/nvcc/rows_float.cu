#include "suite.hpp"

using gyre::operation;

TEST_CASE("cuda on a GPU agrees with the reference: rows and products, float", "[cuda]") {
  gyre_test::check_suite<float, operation{}, operation::attention>();
}
