// The calls of suite_rows_float.cpp, with memory of another size. [no_sanitizer]
#include "suite.hpp"

using gyre::operation;

TEST_CASE("parity of the reference and the cpu backend: operations on rows and products, double", "[parity][threads]") {
  gyre_test::check_suite<double, operation{}, operation::attention>();
}
