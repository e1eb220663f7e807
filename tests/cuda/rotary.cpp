#include "suite.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("rotations of cuda agree with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::rotary, operation::rotary_backward, operation::rotate,
                              operation::column_sum>();
}
