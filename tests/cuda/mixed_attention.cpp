#include "suite.hpp"

using gyre::operation;

TEST_CASE("attention of cuda in bf16 agrees with the reference", "[cuda_kernels][bf16]") {
  gyre_test::check_operations<gyre::bfloat16, operation::attention, operation::attention_backward, operation::depth_attention,
                              operation::depth_attention_backward>(16);
}

TEST_CASE("the cache of cuda in bf16 and attention over it agree with the reference", "[cuda_kernels][bf16]") {
  gyre_test::check_operations<gyre::bfloat16, operation::cached_attention, operation::cache_append, operation::cache_extend>(
      48);
}
