#include "suite.hpp"

using gyre::operation;

TEST_CASE("parity of the reference and the cpu backend: operations on rows and products, bf16", "[parity][threads]") {
  gyre_test::check_suite<gyre::bfloat16, operation{}, operation::attention>();
}
