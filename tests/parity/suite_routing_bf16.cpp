#include "suite.hpp"

using gyre::operation;

TEST_CASE("parity of the reference and the cpu backend: routing, losses and states, bf16", "[parity][threads]") {
  gyre_test::check_suite<gyre::bfloat16, operation::route, operation::squared_norm>();
}
