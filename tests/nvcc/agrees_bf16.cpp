#include "suite.hpp"

TEST_CASE("cuda on a GPU agrees with the reference: every operation, bf16", "[cuda]") {
  gyre_test::check_suite<gyre::bfloat16>();
}
