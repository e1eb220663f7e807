// Ragged batches: depths of their own, and nothing of a sequence depends on the batch around it.
#include <catch2/catch.hpp>

#include "generate/decoding.hpp"

using namespace gyre_test;

TEMPLATE_TEST_CASE("sequences of different depths share a batch", "[decode]", ConcatGrouped, NoInjection) {
  const int steps[] = {5, 1, 8};
  check_against_full_pass<TestType, gyre::fp64>(steps);
  check_against_full_pass<TestType, gyre::fp32>(steps);
}

TEST_CASE("a sequence has the same bits alone, in a batch, and in other pieces", "[decode]") {
  using model = ConcatGrouped;
  const std::size_t lengths[] = {9, 21, 6}, prompts[] = {4, 1, 6};
  const int steps[] = {5, 1, 8};
  decoding<model, gyre::fp32> together;
  std::vector<std::vector<std::vector<float>>> logits(3);
  for (std::size_t i = 0; i < 3; ++i) logits[i].resize(lengths[i]);
  auto all = together.sequences(lengths, steps);
  together.feed(all, prompts, [&](std::size_t i, std::size_t position, const float* z) {
    logits[i][position].assign(z, z + model::shape.vocab);
  });
  for (std::size_t i = 0; i < 3; ++i) {
    decoding<model, gyre::fp32> alone;
    auto one = alone.sequences(lengths, steps);
    for (std::size_t other = 3; other-- > 0;)
      if (other != i) one.erase(one.begin() + static_cast<std::ptrdiff_t>(other));
    const std::size_t shorter = 1 + prompts[i] / 2;
    alone.feed(one, std::span<const std::size_t>(&shorter, 1), [&](std::size_t, std::size_t position, const float* z) {
      if (logits[i][position].empty()) return;
      CHECK(std::equal(z, z + model::shape.vocab, logits[i][position].begin()));
    });
  }
}
