#include "suite.hpp"

using gyre::operation;

TEST_CASE("routing of cuda agrees with the reference in float", "[cuda_kernels]") {
  gyre_test::check_operations<float, operation::route, operation::route_backward, operation::router_loss,
                              operation::router_loss_backward>();
}
