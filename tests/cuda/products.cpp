#include "suite.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("products of cuda agree with the reference", "[cuda_kernels]", float, double, gyre::bfloat16) {
  gyre_test::check_operations<TestType, operation::product, operation::product_input_gradient,
                              operation::product_weight_gradient>();
}

TEST_CASE("products of cuda refuse factors whose sizes do not meet", "[cuda_kernels]") {
  gyre::simulated_cuda device;
  const gyre::matrix_view<const float> x(nullptr, 3, 5);
  const gyre::weight_matrix<float, gyre::simulated_cuda::prepared<float>> w{{nullptr, 4, 6}, nullptr};
  const gyre::matrix_view<float> y(nullptr, 3, 4);
  CHECK_THROWS_WITH(device.product(x, w, y, false), Catch::Contains("product: result 3 x 4 of factors 3 x 5 and 6 x 4"));
  CHECK_THROWS_WITH(device.product_input_gradient(x, w, y, false), Catch::Contains("factors 3 x 5 and 4 x 6"));
  CHECK_THROWS_WITH(device.product_weight_gradient(x, gyre::matrix_view<const float>(nullptr, 2, 4), y),
                    Catch::Contains("factors 5 x 3 and 2 x 4"));
}
