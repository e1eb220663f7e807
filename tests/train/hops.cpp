// The format of the hops task, and that its rows are what they say.
#include <catch2/catch.hpp>

#include <gyre/train/hops.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "train/task_rows.hpp"

using gyre::hops_task;
using gyre::purpose;
using gyre::random_stream;
using gyre::seed;
using gyre::token;

namespace {

constexpr std::size_t length = hops_task::length;

using rows = gyre_test::task_rows<length>;

}  // namespace

TEST_CASE("a hops row is eight edges in random order, eight starts, and where k hops lead", "[hops]") {
  CHECK(hops_task::vocabulary == 72);
  CHECK(hops_task::length == 16);
  const random_stream stream(seed{1}, purpose::task);
  const std::size_t count = 200;
  for (int k : {1, 2, 3, 7, 32}) {
    rows batch(count);
    hops_task::fill(stream, 9, 0, k, batch.inputs, batch.targets);
    for (std::size_t r = 0; r < count; ++r) {
      const token* in = &batch.inputs[r * length];
      const token* out = &batch.targets[r * length];
      std::vector<token> f(8, -1);
      std::set<token> images;
      for (int i = 0; i < 8; ++i) {
        REQUIRE((in[i] >= 0 && in[i] < 64));
        REQUIRE(f[static_cast<std::size_t>(in[i] / 8)] == -1);  // every node has one edge
        f[static_cast<std::size_t>(in[i] / 8)] = in[i] % 8;
        images.insert(in[i] % 8);
        REQUIRE(out[i] == -1);
      }
      REQUIRE(images.size() == 8);
      for (token i = 0; i < 8; ++i) {
        REQUIRE(in[8 + i] == 64 + i);
        token at = i;
        for (int hop = 0; hop < k; ++hop) at = f[static_cast<std::size_t>(at)];
        REQUIRE(out[8 + i] == 64 + at);
      }
    }
  }
}

TEST_CASE("permutations and the order of their edges are uniform and independent", "[hops]") {
  const random_stream stream(seed{2}, purpose::task);
  const std::size_t count = 8000;
  rows batch(count);
  hops_task::fill(stream, 1, 0, 1, batch.inputs, batch.targets);
  std::vector<double> pairs(64, 0.0), first(64, 0.0);
  for (std::size_t r = 0; r < count; ++r) {
    ++first[static_cast<std::size_t>(batch.inputs[r * length])];
    ++pairs[static_cast<std::size_t>(batch.inputs[r * length] / 8 * 8 + batch.inputs[r * length + 1] / 8)];
  }
  double chi_first = 0, chi_pairs = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    chi_first += std::pow(first[i] - count / 64.0, 2) / (count / 64.0);
    if (i / 8 == i % 8)
      CHECK(pairs[i] == 0);
    else
      chi_pairs += std::pow(pairs[i] - count / 56.0, 2) / (count / 56.0);
  }
  CHECK(chi_first < 63 + 5 * std::sqrt(2 * 63.0));
  CHECK(chi_pairs < 55 + 5 * std::sqrt(2 * 55.0));
}

TEST_CASE("hops rows are keyed by stream, step and row, not by how the batch is cut", "[hops]") {
  const random_stream stream(seed{3}, purpose::task);
  rows whole(64), parts(64);
  hops_task::fill(stream, 5, 0, 4, whole.inputs, whole.targets);
  const std::span<token> in(parts.inputs), out(parts.targets);
  hops_task::fill(stream, 5, 0, 4, in.first(24 * length), out.first(24 * length));
  hops_task::fill(stream, 5, 24, 4, in.subspan(24 * length), out.subspan(24 * length));
  CHECK(whole.inputs == parts.inputs);
  CHECK(whole.targets == parts.targets);

  rows hops(64), step(64), other(64), fresh(64);
  hops_task::fill(stream, 5, 0, 5, hops.inputs, hops.targets);
  CHECK(whole.inputs == hops.inputs);  // the number of hops changes the answers only
  CHECK(whole.targets != hops.targets);
  hops_task::fill(stream, 6, 0, 4, step.inputs, step.targets);
  hops_task::fill(random_stream(seed{4}, purpose::task), 5, 0, 4, other.inputs, other.targets);
  hops_task::fill(random_stream(seed{3}, purpose::task, 1), 5, 0, 4, fresh.inputs, fresh.targets);
  for (const rows* r : {&step, &other, &fresh}) {
    int same = 0;
    for (std::size_t i = 0; i < 64; ++i)
      same += std::equal(&r->inputs[i * length], &r->inputs[i * length] + length, &whole.inputs[i * length]);
    CHECK(same == 0);  // equal by chance with probability 64 / 8!^2
  }
}

TEST_CASE("wrong hops and spans are refused with their numbers", "[hops]") {
  const random_stream stream(seed{1}, purpose::task);
  rows batch(2);
  CHECK_THROWS_WITH(hops_task::fill(stream, 1, 0, 0, batch.inputs, batch.targets), Catch::Contains("hops is 0"));
  CHECK_THROWS_WITH(hops_task::fill(stream, 1, 0, 1, batch.inputs, std::span(batch.targets).first(16)),
                    Catch::Contains("32 inputs and 16 targets"));
  CHECK_THROWS_AS(hops_task::fill(stream, 1, 0, 1, std::span(batch.inputs).first(15), std::span(batch.targets).first(15)),
                  gyre::error);
}
