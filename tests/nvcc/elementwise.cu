#include "suite.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("elementwise operations of cuda on a GPU agree with the reference", "[cuda]", float, double) {
  gyre_test::check_operations<TestType, operation::fill, operation::copy, operation::add, operation::add_scaled,
                              operation::gather>();
}
