// On the cpu backend: decoding with a cache against passes without. [threads]
#include <gyre/backend/cpu.hpp>

#include <catch2/catch.hpp>

#include "generate/decoding.hpp"

using namespace gyre_test;

TEST_CASE("on the cpu, decoding with a cache equals one pass without", "[decode][threads]") {
  const int steps[] = {5, 1, 8};
  check_against_full_pass<ConcatGrouped, gyre::fp32>(steps, gyre::cpu{2});
  check_against_full_pass<Concat, gyre::fp64>(steps, gyre::cpu{1});
}
