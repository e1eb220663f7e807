#include "suite.hpp"

TEST_CASE("cuda on a GPU agrees with the reference: every operation, double", "[cuda]") { gyre_test::check_suite<double>(); }
