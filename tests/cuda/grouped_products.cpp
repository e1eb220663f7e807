#include "suite.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("grouped products of cuda agree with the reference", "[cuda_kernels]", float, double, gyre::bfloat16) {
  gyre_test::check_operations<TestType, operation::grouped_product, operation::grouped_product_input_gradient,
                              operation::grouped_product_weight_gradient>();
}
