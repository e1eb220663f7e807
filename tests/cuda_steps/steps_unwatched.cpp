// A Huginn whose query heads share one key head: its kernels are watched with another number of heads (steps.cpp).
#include "steps.hpp"

namespace gyre_test {

TEST_CASE("training steps of a model like Huginn, five query heads on one", "[cuda_kernels][early]") {
  std::set<gyre::operation> seen;
  check_steps<huginn_like<1>, gyre::fp32>(three_steps, seen);
  CHECK(seen.contains(gyre::operation::adamw_update));
}
TEST_CASE("training steps of a model like Huginn in bf16_mixed, five query heads on one", "[cuda_kernels][bf16][early]") {
  std::set<gyre::operation> seen;
  check_steps<huginn_like<1>, gyre::bf16_mixed>(three_steps, seen);
  CHECK(seen.contains(gyre::operation::clipped_atan2_update));
}

}  // namespace gyre_test
