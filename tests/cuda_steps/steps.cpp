// Whole training steps on the kernels of the cuda backend: as they come, and with every access watched.
#include "steps.hpp"

namespace gyre_test {

namespace {

template <class P>
void check_mixture() {
  std::set<gyre::operation> seen;
  check_steps<dreamer_like, P>({0, 3}, seen);
  for (const gyre::operation of :
       {gyre::operation::route, gyre::operation::route_backward, gyre::operation::group_pairs, gyre::operation::spread,
        gyre::operation::collect, gyre::operation::collect_backward, gyre::operation::grouped_product,
        gyre::operation::grouped_product_weight_gradient, gyre::operation::depth_attention_backward, gyre::operation::rotate})
    CHECK(seen.contains(of));
}

}  // namespace

TEST_CASE("training steps of a model like Huginn, five heads", "[cuda_kernels][early]") {
  std::set<gyre::operation> seen;
  check_steps<huginn_like<5>, gyre::fp32>(three_steps, seen);
  CHECK(seen.contains(gyre::operation::attention_backward));
}
TEST_CASE("training steps of a model like Huginn in bf16_mixed, five heads", "[cuda_kernels][bf16][early]") {
  std::set<gyre::operation> seen;
  check_steps<huginn_like<5>, gyre::bf16_mixed>(three_steps, seen);
  CHECK(seen.contains(gyre::operation::attention_backward));
}
TEST_CASE("training steps of a model like Dreamer", "[cuda_kernels][early]") { check_mixture<gyre::fp32>(); }
TEST_CASE("training steps of a model like Dreamer in bf16_mixed", "[cuda_kernels][bf16][early]") {
  check_mixture<gyre::bf16_mixed>();
}

}  // namespace gyre_test
