#include "lockstep.hpp"

namespace gyre_test {

TEST_CASE("in lockstep every call of a Dreamer's steps in bf16_mixed has its own tolerance", "[cuda_kernels][bf16][early]") {
  const auto seen = check_in_lockstep<dreamer_like>({0, 3}, 3);
  for (const char* name : {"route", "grouped_product_weight_gradient", "collect_backward", "depth_attention_backward"})
    CHECK(seen.contains(name));
}

}  // namespace gyre_test
