#include "suite.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("depth attention of cuda agrees with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::depth_attention, operation::depth_attention_backward>();
}
