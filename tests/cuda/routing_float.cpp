#include "routing.hpp"

TEST_CASE("routing of cuda agrees with the reference in float", "[cuda_kernels]") { gyre_test::check_routing<float>(); }
