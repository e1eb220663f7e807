// Decoding with a cache against one pass without, in bf16_mixed. Both round in the same places and add in one order, so that no more
// may differ than in float.
#include <catch2/catch.hpp>

#include <gyre/backend/cpu.hpp>

#include "generate/decoding.hpp"

using namespace gyre_test;

TEST_CASE("decoding with a cache equals one pass without, in bf16_mixed", "[decode][bf16]") {
  for (const int r : {1, 5}) {
    INFO("r = " << r);
    check_against_full_pass<ConcatGrouped, gyre::bf16_mixed>(std::span<const int>(&r, 1), gyre::cpu{1});
  }
}
