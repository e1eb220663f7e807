#include "attention.hpp"

using gyre::operation;

TEST_CASE("sequence attention of cuda agrees with the reference, double", "[cuda_kernels]") {
  gyre_test::check_operations<double, operation::attention>();
}

TEST_CASE("sequence attention of cuda agrees across tiles of rows and keys, double", "[cuda_kernels]") {
  gyre_test::check_attention_across_tiles<double>();
}
