#include "norms.hpp"

TEST_CASE("norms of cuda agree with the reference, double", "[cuda_kernels]") { gyre_test::check_norms<double>(); }
TEST_CASE("norms of cuda agree with the reference on long rows, double", "[cuda_kernels]") {
  gyre_test::check_norms_of_long_rows<double>();
}
TEST_CASE("the gain of a norm may lie anywhere, double", "[cuda_kernels]") { gyre_test::check_gain_anywhere<double>(); }
