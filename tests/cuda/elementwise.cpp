// kernels: elementwise.cuh, device.cuh
#include "suite.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("elementwise operations of cuda agree with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::fill, operation::copy, operation::add, operation::add_scaled,
                              operation::add_scaled_backward, operation::gather>();
}
