#include "suite.hpp"

using gyre::operation;

TEST_CASE("cuda on a GPU agrees with the reference: attention, double", "[cuda]") {
  gyre_test::check_suite<double, operation::attention, operation::attention_backward>();
}
TEST_CASE("cuda on a GPU agrees with the reference: attention over caches, double", "[cuda]") {
  gyre_test::check_suite<double, operation::cached_attention, operation::cache_extend>();
}
TEST_CASE("cuda on a GPU agrees with the reference: attention over depths, double", "[cuda]") {
  gyre_test::check_suite<double, operation::rotate, operation::route>();
}
