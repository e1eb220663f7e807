#include "attention.hpp"

using gyre::operation;

TEST_CASE("sequence attention of cuda agrees with the reference, float", "[cuda_kernels]") {
  gyre_test::check_operations<float, operation::attention>();
}

TEST_CASE("sequence attention of cuda agrees across tiles of rows and keys, float", "[cuda_kernels]") {
  gyre_test::check_attention_across_tiles<float>();
}

// Two parts of the keys, and a tile of rows in each.
TEST_CASE("sequence attention of cuda joins the parts of a long sequence", "[cuda_kernels]") {
  gyre_test::check_sizes<float, operation::attention>({{1, 260, 1, 1, 4}});
}
