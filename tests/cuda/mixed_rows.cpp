#include "suite.hpp"

using gyre::operation;

TEST_CASE("gates, embedding, loss and initial states of cuda in bf16 agree with the reference", "[cuda_kernels][bf16]") {
  gyre_test::check_operations<gyre::bfloat16, operation::gated_silu, operation::gated_silu_backward, operation::embed,
                              operation::embed_backward, operation::cross_entropy, operation::random_normal>(16);
}
