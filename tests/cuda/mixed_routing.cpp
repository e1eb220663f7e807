#include "suite.hpp"

using gyre::operation;

TEST_CASE("routing of cuda in bf16 agree with the reference", "[cuda_kernels][bf16]") {
  gyre_test::check_operations<gyre::bfloat16, operation::spread, operation::collect, operation::collect_backward,
                              operation::route>(16);
}
