#include "suite.hpp"

using gyre::operation;

TEST_CASE("pairs of rows and experts on cuda agree with the reference in double", "[cuda_kernels]") {
  gyre_test::check_operations<double, operation::group_pairs, operation::spread, operation::collect,
                              operation::collect_backward>();
}
