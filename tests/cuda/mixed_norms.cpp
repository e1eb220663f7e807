#include "suite.hpp"

using gyre::operation;

TEST_CASE("norms of cuda in bf16 agree with the reference", "[cuda_kernels][bf16]") {
  gyre_test::check_operations<gyre::bfloat16, operation::rms_norm, operation::add_rms_norm, operation::rms_norm_backward,
                              operation::row_change, operation::standardise>(16);
}
