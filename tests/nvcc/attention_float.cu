#include "suite.hpp"

using gyre::operation;

TEST_CASE("cuda on a GPU agrees with the reference: attention, float", "[cuda]") {
  gyre_test::check_suite<float, operation::attention, operation::attention_backward>();
}
TEST_CASE("cuda on a GPU agrees with the reference: attention over caches, float", "[cuda]") {
  gyre_test::check_suite<float, operation::cached_attention, operation::cache_extend>();
}
TEST_CASE("cuda on a GPU agrees with the reference: attention over depths, float", "[cuda]") {
  gyre_test::check_suite<float, operation::rotate, operation::route>();
}
