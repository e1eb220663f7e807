#include "lockstep.hpp"

namespace gyre_test {

TEST_CASE("in lockstep every call of a Huginn's steps in bf16_mixed has its own tolerance", "[cuda_kernels][bf16][early]") {
  const auto seen = check_in_lockstep<huginn_like<5>>({1, 2}, 3);
  CHECK(seen.contains("attention_backward"));
  CHECK(seen.contains("clipped_atan2_update"));
}

}  // namespace gyre_test
