// Decoding with a cache against one pass without.
#include <catch2/catch.hpp>

#include "generate/decoding.hpp"

using namespace gyre_test;

TEMPLATE_TEST_CASE("decoding with a cache equals one pass without", "[decode]", Concat, ConcatGrouped, AddGrouped,
                   NoInjection) {
  for (const int r : {1, 4, 8}) {
    INFO("r = " << r);
    check_against_full_pass<TestType, gyre::fp64>(std::span<const int>(&r, 1));
  }
}
