#include "trials.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("gates of cuda agree with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::gated_silu, operation::gated_silu_backward>();
  for (const gyre::index offset : {0, 1}) {  // rows of several blocks
    gyre_test::check_trial<TestType, operation::gated_silu>({{"rows", 3}, {"cols", 1100}, {"spread", 1}, {"offset", offset}});
    gyre_test::check_trial<TestType, operation::gated_silu_backward>(
        {{"rows", 3}, {"cols", 1100}, {"spread", 1}, {"offset", offset}});
  }
}
