#include "lockstep.hpp"

namespace gyre_test {

TEST_CASE("in lockstep a Huginn with heads of 64 takes steps on tensor cores", "[cuda_kernels][bf16][early]") {
  const auto seen = check_in_lockstep<huginn_of_64>({1, 2}, 1);
  CHECK(seen.contains("attention"));
  CHECK(seen.contains("attention_backward"));
}

}  // namespace gyre_test
