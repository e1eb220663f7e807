#include "attention.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("sequence attention of cuda agrees with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::attention>();
}

TEMPLATE_TEST_CASE("sequence attention of cuda agrees across tiles of rows and keys", "[cuda_kernels]", float, double) {
  // sequences, length, kv_heads, sharing, width, gap, offset, special
  gyre_test::check_sizes<TestType, operation::attention>({{1, 131, 1, 1, 64},
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
