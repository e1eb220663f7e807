#include "attention.hpp"

using gyre::operation;

TEST_CASE("gradients of sequence attention of cuda agree with the reference, float", "[cuda_kernels]") {
  gyre_test::check_operations<float, operation::attention_backward>();
}

TEST_CASE("gradients of sequence attention of cuda agree across tiles, float", "[cuda_kernels]") {
  gyre_test::check_attention_gradients_across_tiles<float>();
}
