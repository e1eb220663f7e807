// kernels: attention.cuh
#include "attention.hpp"

using gyre::operation;

TEST_CASE("attention of cuda over a cache agrees with the reference, float", "[cuda_kernels]") {
  gyre_test::check_operations<float, operation::cached_attention>();
}

TEST_CASE("attention of cuda over a cache agrees across tiles, float", "[cuda_kernels]") {
  // sequences, length, kv_heads, sharing, width, gap, offset, special, past, skip
  gyre_test::check_sizes<float, operation::cached_attention>({{1, 70, 1, 1, 8, 0, 0, 0, 100, 1},
                                                              {2, 1, 2, 5, 64, 0, 0, 0, 131, 1},
                                                              {1, 2, 1, 3, 65, 3, 1, 0, 90, 1},
                                                              {1, 3, 1, 20, 8, 0, 0, 2, 70},
                                                              {1, 1, 1, 1, 200, 0, 0, 0, 40}});
}

// A block for each part, and one for the rows of a prefill that sees as many.
TEST_CASE("attention of cuda over a cache joins the parts of a long past", "[cuda_kernels]") {
  gyre_test::check_sizes<float, operation::cached_attention>({{1, 1, 2, 5, 4, 0, 0, 0, 255},
                                                              {2, 1, 1, 2, 40, 0, 0, 0, 256, 1},
                                                              {1, 2, 1, 20, 8, 0, 0, 1, 600, 1},
                                                              {1, 70, 1, 1, 4, 0, 0, 0, 300, 1}});
}
