// kernels: attention_backward.cuh, attention_tile.cuh
#include "attention.hpp"

using gyre::operation;

TEST_CASE("gradients of sequence attention of cuda agree with the reference, float", "[cuda_kernels]") {
  gyre_test::check_operations<float, operation::attention_backward>();
}

TEST_CASE("gradients of sequence attention of cuda agree across tiles, float", "[cuda_kernels]") {
  // sequences, length, kv_heads, sharing, width, gap, offset, special
  gyre_test::check_sizes<float, operation::attention_backward>({{1, 67, 1, 1, 64},
                                                                {2, 35, 1, 1, 128, 3, 1},
                                                                {1, 35, 1, 2, 65, 0, 1, 1},
                                                                {1, 19, 1, 3, 200},
                                                                {1, 18, 1, 1, 256},
                                                                {1, 35, 1, 3, 8, 0, 0, 2},
                                                                {1, 66, 1, 1, 12, 4, 0, 3}});
}
