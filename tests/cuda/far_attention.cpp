// Attention over rows of which the last lie beyond 2^32 elements.
#include "far_apart.hpp"

using gyre::operation;

TEST_CASE("attention reaches rows beyond 2^32 elements", "[cuda_kernels]") {
  for (const gyre::index width : {8, 64}) {  // 64: of the kernels for tensor cores, in bf16
    const auto check = [&]<class T>(T) {
      gyre_test::check_far_apart<T, operation::attention>(
          {{"sequences", 1}, {"length", 33}, {"kv_heads", 1}, {"sharing", 2}, {"width", width}});
      gyre_test::check_far_apart<T, operation::attention_backward>(
          {{"sequences", 1}, {"length", 33}, {"kv_heads", 1}, {"sharing", 2}, {"width", width}});
    };
    check(float());
    check(gyre::bfloat16());
  }
}

TEST_CASE("attention over depth reaches rows beyond 2^32 elements", "[cuda_kernels]") {
  gyre_test::check_far_apart<float, operation::depth_attention>(
      {{"rows", 7}, {"slots", 3}, {"kv_heads", 1}, {"sharing", 2}, {"width", 8}});
  gyre_test::check_far_apart<float, operation::depth_attention_backward>(
      {{"rows", 7}, {"slots", 3}, {"kv_heads", 1}, {"sharing", 2}, {"width", 8}});
}
