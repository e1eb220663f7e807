#include "suite.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("gates of cuda agree with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::gated_silu, operation::gated_silu_backward>();
}
