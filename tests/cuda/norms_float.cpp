#include "norms.hpp"

TEST_CASE("norms of cuda agree with the reference, float", "[cuda_kernels]") { gyre_test::check_norms<float>(); }
TEST_CASE("norms of cuda agree with the reference on long rows, float", "[cuda_kernels]") {
  gyre_test::check_norms_of_long_rows<float>();
}
TEST_CASE("the gain of a norm may lie anywhere, float", "[cuda_kernels]") { gyre_test::check_gain_anywhere<float>(); }
