// The format of the permutations task: how S5 is numbered, in which order it is multiplied, and what a row is a function of.
#include <catch2/catch.hpp>

#include <gyre/train/permutations.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

using gyre::permutations_task;
using gyre::purpose;
using gyre::random_stream;
using gyre::seed;
using gyre::token;
using images = permutations_task::images;

namespace {

struct rows {
  std::vector<token> inputs, targets;
  explicit rows(std::size_t tokens) : inputs(tokens, -5), targets(tokens, -5) {}
};

}  // namespace

TEST_CASE("elements of S5 are numbered in lexicographic order of their images", "[permutations]") {
  images g{0, 1, 2, 3, 4};
  token number = 0;
  do {
    CHECK(permutations_task::images_of(number) == g);
    CHECK(permutations_task::element_of(g) == number);
    ++number;
  } while (std::next_permutation(g.begin(), g.end()));
  CHECK(number == permutations_task::vocabulary);
  static_assert(permutations_task::element_of({4, 3, 2, 1, 0}) == 119);
  static_assert(permutations_task::images_of(24) == images{1, 0, 2, 3, 4});
  CHECK_THROWS_WITH(permutations_task::images_of(120), Catch::Contains("element 120"));
  CHECK_THROWS_WITH(permutations_task::images_of(-1), Catch::Contains("element -1"));
}

TEST_CASE("products form a group and act in the order of reading", "[permutations]") {
  const token swap = permutations_task::element_of({1, 0, 2, 3, 4}), turn = permutations_task::element_of({1, 2, 3, 4, 0});
  // First the swap: 0 -> 1, then the turn: 1 -> 2.
  CHECK(permutations_task::product(turn, swap) == permutations_task::element_of({2, 1, 3, 4, 0}));
  CHECK(permutations_task::product(swap, turn) == permutations_task::element_of({0, 2, 3, 4, 1}));
  for (token a = 0; a < 120; ++a) {
    CHECK(permutations_task::product(a, 0) == a);
    CHECK(permutations_task::product(0, a) == a);
    std::vector<bool> met(120);
    for (token b = 0; b < 120; ++b) met[static_cast<std::size_t>(permutations_task::product(a, b))] = true;
    CHECK(std::count(met.begin(), met.end(), true) == 120);  // a row of the table holds every element, the identity too
  }
}

TEST_CASE("targets are the products so far", "[permutations]") {
  rows batch(48 * 50);
  permutations_task::fill(random_stream(seed{1}, purpose::task), 9, 0, 48, batch.inputs, batch.targets);
  for (std::size_t r = 0; r < 50; ++r) {
    token points[] = {0, 1, 2, 3, 4};  // where each point has come to
    for (std::size_t t = 48 * r; t < 48 * (r + 1); ++t) {
      REQUIRE((batch.inputs[t] >= 0 && batch.inputs[t] < 120));
      const images x = permutations_task::images_of(batch.inputs[t]), p = permutations_task::images_of(batch.targets[t]);
      for (token& point : points) point = x[static_cast<std::size_t>(point)];
      CHECK(std::equal(p.begin(), p.end(), points));
    }
    CHECK(batch.targets[48 * r] == batch.inputs[48 * r]);
  }
}

TEST_CASE("elements and products are uniform and independent of the product before", "[permutations]") {
  const std::size_t count = 6000;
  rows batch(4 * count);
  permutations_task::fill(random_stream(seed{2}, purpose::task), 1, 0, 4, batch.inputs, batch.targets);
  for (const std::vector<token>* all : {&batch.inputs, &batch.targets}) {
    std::vector<double> seen(120, 0.0);
    for (const token t : *all) ++seen[static_cast<std::size_t>(t)];
    double chi = 0;
    for (const double n : seen) chi += std::pow(n - 4 * count / 120.0, 2) / (4 * count / 120.0);
    CHECK(chi < 119 + 5 * std::sqrt(2 * 119.0));
  }
  std::vector<double> pairs(100, 0.0);  // tenths of consecutive elements
  for (std::size_t r = 0; r < count; ++r)
    ++pairs[static_cast<std::size_t>(batch.inputs[4 * r] / 12 * 10 + batch.inputs[4 * r + 1] / 12)];
  double chi = 0;
  for (const double n : pairs) chi += std::pow(n - count / 100.0, 2) / (count / 100.0);
  CHECK(chi < 99 + 5 * std::sqrt(2 * 99.0));
}

TEST_CASE("rows of permutations are keyed by stream, step and row, and short ones begin long ones", "[permutations]") {
  const random_stream stream(seed{3}, purpose::task);
  rows whole(64 * 12), parts(64 * 12), brief(64 * 5);
  permutations_task::fill(stream, 5, 0, 12, whole.inputs, whole.targets);
  const std::span<token> in(parts.inputs), out(parts.targets);
  permutations_task::fill(stream, 5, 0, 12, in.first(24 * 12), out.first(24 * 12));
  permutations_task::fill(stream, 5, 24, 12, in.subspan(24 * 12), out.subspan(24 * 12));
  CHECK(whole.inputs == parts.inputs);
  CHECK(whole.targets == parts.targets);
  permutations_task::fill(stream, 5, 0, 5, brief.inputs, brief.targets);
  for (std::size_t r = 0; r < 64; ++r) {
    CHECK(std::equal(&brief.inputs[5 * r], &brief.inputs[5 * r] + 5, &whole.inputs[12 * r]));
    CHECK(std::equal(&brief.targets[5 * r], &brief.targets[5 * r] + 5, &whole.targets[12 * r]));
  }
  const auto differs = [&](const random_stream& other, std::uint64_t step) {
    rows fresh(64 * 12);
    permutations_task::fill(other, step, 0, 12, fresh.inputs, fresh.targets);
    int same = 0;
    for (std::size_t r = 0; r < 64; ++r)
      same += std::equal(&fresh.inputs[12 * r], &fresh.inputs[12 * r] + 12, &whole.inputs[12 * r]);
    CHECK(same == 0);
  };
  differs(stream, 6);
  differs(random_stream(seed{4}, purpose::task), 5);
  differs(random_stream(seed{3}, purpose::task, 1), 5);
}

TEST_CASE("rows of swaps begin with the identity, which does not count, and follow the same products", "[permutations]") {
  using drawn_from = permutations_task::drawn_from;
  for (std::size_t i = 0; i + 1 < permutations_task::points; ++i) {
    images swap{0, 1, 2, 3, 4};
    std::swap(swap[i], swap[i + 1]);
    CHECK(permutations_task::swaps[i] == permutations_task::element_of(swap));
  }
  const std::size_t count = 500, n = 48;
  const random_stream stream(seed{4}, purpose::task);
  rows batch(n * count), brief(n / 2 * count);
  permutations_task::fill(stream, 9, 0, n, batch.inputs, batch.targets, drawn_from::swaps);
  permutations_task::fill(stream, 9, 0, n / 2, brief.inputs, brief.targets, drawn_from::swaps);
  std::vector<double> seen(4, 0.0), ends(120, 0.0);
  for (std::size_t r = 0; r < count; ++r) {
    REQUIRE(batch.inputs[n * r] == 0);
    REQUIRE(batch.targets[n * r] == -1);
    token product = 0;
    for (std::size_t t = n * r + 1; t < n * (r + 1); ++t) {
      const auto which = std::find(permutations_task::swaps.begin(), permutations_task::swaps.end(), batch.inputs[t]);
      REQUIRE(which != permutations_task::swaps.end());
      ++seen[static_cast<std::size_t>(which - permutations_task::swaps.begin())];
      CHECK(batch.targets[t] == (product = permutations_task::product(batch.inputs[t], product)));
    }
    ++ends[static_cast<std::size_t>(product)];
    CHECK(std::equal(&brief.inputs[n / 2 * r], &brief.inputs[n / 2 * r] + n / 2, &batch.inputs[n * r]));
    CHECK(std::equal(&brief.targets[n / 2 * r], &brief.targets[n / 2 * r] + n / 2, &batch.targets[n * r]));
  }
  double chi = 0;
  const double each = static_cast<double>((n - 1) * count) / 4;
  for (const double k : seen) chi += (k - each) * (k - each) / each;
  CHECK(chi < 3 + 5 * std::sqrt(2 * 3.0));
  CHECK(std::count_if(ends.begin(), ends.end(), [](double k) { return k > 0; }) ==
        60);  // 47 swaps: every odd element, no other
}

TEST_CASE("wrong lengths and spans of permutations are refused with their numbers", "[permutations]") {
  const random_stream stream(seed{1}, purpose::task);
  rows batch(96);
  for (const int length : {0, -1, 49})
    CHECK_THROWS_WITH(permutations_task::fill(stream, 1, 0, length, batch.inputs, batch.targets),
                      Catch::Contains("rows of " + std::to_string(length) + " elements; 1 to 48"));
  CHECK_THROWS_WITH(permutations_task::fill(stream, 1, 0, 48, batch.inputs, std::span(batch.targets).first(48)),
                    Catch::Contains("96 inputs and 48 targets"));
  CHECK_THROWS_WITH(permutations_task::fill(stream, 1, 0, 7, batch.inputs, batch.targets), Catch::Contains("rows of 7"));
}
