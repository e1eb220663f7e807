#include "suite.hpp"

TEST_CASE("cuda on a GPU agrees with the reference: every operation, float", "[cuda]") { gyre_test::check_suite<float>(); }
