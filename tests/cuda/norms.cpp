#include "suite.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("norms of cuda agree with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::rms_norm, operation::add_rms_norm, operation::rms_norm_backward,
                              operation::standardise, operation::row_change>();
}
