#include "routing.hpp"

TEST_CASE("routing of cuda agrees with the reference in double", "[cuda_kernels]") { gyre_test::check_routing<double>(); }
