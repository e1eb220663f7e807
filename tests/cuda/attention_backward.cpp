#include "attention.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("gradients of sequence attention of cuda agree with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::attention_backward>();
}

TEMPLATE_TEST_CASE("gradients of sequence attention of cuda agree across tiles", "[cuda_kernels]", float, double) {
  // sequences, length, kv_heads, sharing, width, gap, offset, special
  gyre_test::check_sizes<TestType, operation::attention_backward>({{1, 67, 1, 1, 64},
                                                                   {2, 35, 1, 1, 128, 3, 1},
                                                                   {1, 35, 1, 2, 65, 0, 1, 1},
                                                                   {1, 19, 1, 3, 200},
                                                                   {1, 18, 1, 1, 256},
                                                                   {1, 35, 1, 3, 8, 0, 0, 2},
                                                                   {1, 66, 1, 1, 12, 4, 0, 3}});
}
