// kernels: attention.cuh, attention_tile.cuh
#include "attention.hpp"

using gyre::operation;

TEST_CASE("sequence attention of cuda agrees with the reference, float", "[cuda_kernels]") {
  gyre_test::check_operations<float, operation::attention>();
}

TEST_CASE("sequence attention of cuda agrees across tiles of rows and keys, float", "[cuda_kernels]") {
  // sequences, length, kv_heads, sharing, width, gap, offset, special
  gyre_test::check_sizes<float, operation::attention>({{1, 131, 1, 1, 64},
                                                       {2, 35, 1, 1, 128, 3, 1},
                                                       {1, 35, 1, 2, 65, 0, 1, 1},
                                                       {1, 19, 1, 3, 200},
                                                       {1, 35, 1, 1, 256},
                                                       {1, 67, 1, 3, 8, 0, 0, 2},
                                                       {1, 66, 1, 1, 12, 4, 0, 3}});
}

// Two parts of the keys, and a tile of rows in each.
TEST_CASE("sequence attention of cuda joins the parts of a long sequence", "[cuda_kernels]") {
  gyre_test::check_sizes<float, operation::attention>({{1, 260, 1, 1, 4}});
}
