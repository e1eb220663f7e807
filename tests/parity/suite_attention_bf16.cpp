#include "suite.hpp"

using gyre::operation;

TEST_CASE("parity of the reference and the cpu backend: attention, bf16", "[parity][threads]") {
  gyre_test::check_suite<gyre::bfloat16, operation::attention, operation::route>();
}
