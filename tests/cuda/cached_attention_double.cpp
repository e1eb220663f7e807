#include "attention.hpp"

using gyre::operation;

TEST_CASE("attention of cuda over a cache agrees with the reference, double", "[cuda_kernels]") {
  gyre_test::check_operations<double, operation::cached_attention>();
}

TEST_CASE("attention of cuda over a cache agrees across tiles, double", "[cuda_kernels]") {
  gyre_test::check_cached_attention_across_tiles<double>();
}
