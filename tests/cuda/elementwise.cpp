#include "trials.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("elementwise operations of cuda agree with the reference", "[cuda_kernels]", float, double, gyre::bfloat16) {
  gyre_test::check_operations<TestType, operation::fill, operation::copy, operation::add, operation::add_scaled,
                              operation::add_scaled_backward, operation::gather>();
}

TEMPLATE_TEST_CASE("rows of several blocks agree with the reference", "[cuda_kernels]", float, double) {
  // A gap of 3 puts rows of 1029 at packs, with a tail, and rows of 300 elsewhere.
  for (const gyre::index cols : {gyre::index{1029}, gyre::index{300}}) {
    gyre_test::check_trial<TestType, operation::add>({{"rows", 3}, {"cols", cols}, {"gap", 3}});
    gyre_test::check_trial<TestType, operation::gather>({{"rows", 3}, {"source", 2}, {"cols", cols}, {"gap", 3}});
  }
  gyre_test::check_trial<TestType, operation::add_scaled_backward>({{"rows", 3}, {"cols", 1028}});
  gyre_test::check_trial<TestType, operation::add_scaled_backward>({{"rows", 8 * 512 + 3}, {"cols", 1}});  // more than warps
}
