#include "attention.hpp"

using gyre::operation;

TEST_CASE("attention of cuda over a cache agrees with the reference, float", "[cuda_kernels]") {
  gyre_test::check_operations<float, operation::cached_attention>();
}

TEST_CASE("attention of cuda over a cache agrees across tiles, float", "[cuda_kernels]") {
  gyre_test::check_cached_attention_across_tiles<float>();
}

// A block for each part, and one for the rows of a prefill that sees as many.
TEST_CASE("attention of cuda over a cache joins the parts of a long past", "[cuda_kernels]") {
  gyre_test::check_sizes<float, operation::cached_attention>({{1, 1, 2, 5, 4, 0, 0, 0, 255},
                                                              {2, 1, 1, 2, 40, 0, 0, 0, 256, 1},
                                                              {1, 2, 1, 20, 8, 0, 0, 1, 600, 1},
                                                              {1, 70, 1, 1, 4, 0, 0, 0, 300, 1}});
}
