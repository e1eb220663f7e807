// The hops task end to end: trained on 1 to 6 hops, a model must follow up to 32, one hop a step. [slow] [no_sanitizer]
#include <catch2/catch.hpp>

#include "../../examples/support/hops.hpp"

TEST_CASE("a model trained on up to 6 hops follows 32, and needs exactly one step a hop", "[slow][serial]") {
  examples::hops_training training(gyre::cpu{}, gyre::seed{0});
  while (!training.finished()) training.step();
  for (int k = 1; k <= 32; ++k) {
    INFO(k << " hops, 4096 answers on fresh permutations");
    CHECK(training.accuracy(k, k) >= (k <= 24 ? 0.99 : 0.97));
    CHECK(std::abs(training.accuracy(k, k + 1) - 0.125) <= 0.04);
    if (k >= 2) CHECK(std::abs(training.accuracy(k, k - 1) - 0.125) <= 0.04);
  }
}
