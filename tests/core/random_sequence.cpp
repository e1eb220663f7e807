// Sequential draws: no bias, every permutation, the moments and distributions of Poisson and log-normal numbers.
#include <catch2/catch.hpp>

#include <gyre/core/random_sequence.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

using gyre::purpose;
using gyre::random_sequence;
using gyre::random_stream;
using gyre::seed;

namespace {

const random_stream stream(seed{5}, purpose::task);

// Chi-square within 5 standard deviations of its mean (variance 2 n at n degrees of freedom).
void check_chi_square(const std::vector<double>& counts, const std::vector<double>& expected) {
  double chi_square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    chi_square += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  const double degrees = static_cast<double>(counts.size() - 1);
  CHECK(chi_square < degrees + 5 * std::sqrt(2 * degrees));
}

}  // namespace

TEST_CASE("a sequence reads its stream at consecutive counters", "[random]") {
  random_sequence draws(stream, 0x500000006, 7), other(stream, 0x500000006, 8);
  CHECK(draws.bits() == stream.bits({5, 6, 7, 0}));
  CHECK(draws.uniform() == stream.uniform({5, 6, 7, 1}));
  CHECK(draws.normal() == stream.normal({5, 6, 7, 2}));
  CHECK(other.bits() == stream.bits({5, 6, 8, 0}));
}

TEST_CASE("integers below a count are equally likely", "[random]") {
  random_sequence draws(stream, 1);
  for (std::uint64_t count : {1u, 2u, 3u, 7u, 10u}) {
    std::vector<double> counts(count, 0.0);
    for (int i = 0; i < 50000; ++i) ++counts.at(static_cast<std::size_t>(draws.below(count)));
    if (count > 1) check_chi_square(counts, std::vector<double>(count, 50000.0 / static_cast<double>(count)));
  }
  // With count = 3 * 2^62, a plain remainder of 64 bits would return values below 2^62 half of the time instead of a third.
  const int trials = 30000;
  int low = 0;
  for (int i = 0; i < trials; ++i) low += draws.below(3ull << 62) < (1ull << 62);
  CHECK(std::fabs(low - trials / 3.0) < 5 * std::sqrt(trials * 2 / 9.0));
  CHECK_THROWS_WITH(draws.below(0), Catch::Contains("count is 0"));
}

TEST_CASE("all permutations are equally likely", "[random]") {
  random_sequence draws(stream, 2);
  std::map<std::vector<int>, double> seen;
  std::vector<int> order(4);
  const int trials = 24000;
  for (int i = 0; i < trials; ++i) {
    draws.permutation(std::span(order));
    ++seen[order];
  }
  CHECK(seen.size() == 24);
  std::vector<double> counts;
  for (const auto& [permutation, count] : seen) {
    std::vector<int> sorted = permutation;
    std::sort(sorted.begin(), sorted.end());
    REQUIRE(sorted == std::vector<int>{0, 1, 2, 3});
    counts.push_back(count);
  }
  check_chi_square(counts, std::vector<double>(counts.size(), trials / 24.0));
  draws.permutation(std::span<int>());
}

TEST_CASE("Poisson numbers have their distribution, also beyond one inversion", "[random]") {
  const int trials = 40000;
  for (double mean : {0.3, 4.0, 16.0, 16.5, 40.0, 333.0}) {
    random_sequence draws(stream, 3, static_cast<std::uint32_t>(mean * 10));
    double sum = 0, squares = 0;
    // Cells around the mean of at least 50 expected numbers; the rest in two outer cells.
    const int low = (std::max)(0, static_cast<int>(mean - 2 * std::sqrt(mean)));
    const int high = static_cast<int>(mean + 2 * std::sqrt(mean)) + 1;
    std::vector<double> counts(static_cast<std::size_t>(high - low + 2), 0.0), expected(counts.size(), 0.0);
    for (int i = 0; i < trials; ++i) {
      const auto k = static_cast<double>(draws.poisson(mean));
      sum += k;
      squares += (k - mean) * (k - mean);
      ++counts[static_cast<std::size_t>((std::clamp)(static_cast<int>(k), low - 1, high) - low + 1)];
    }
    CHECK(std::fabs(sum / trials - mean) < 5 * std::sqrt(mean / trials));
    CHECK(std::fabs(squares / trials - mean) < 5 * std::sqrt((mean + 2 * mean * mean) / trials));
    for (int k = 0; k < static_cast<int>(mean + 40 * std::sqrt(mean) + 60); ++k)
      expected[static_cast<std::size_t>((std::clamp)(k, low - 1, high) - low + 1)] +=
          trials * std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0));
    if (low == 0) {  // nothing lies below
      REQUIRE(counts[0] == 0);
      counts.erase(counts.begin());
      expected.erase(expected.begin());
    }
    check_chi_square(counts, expected);
  }
  random_sequence draws(stream, 4);
  CHECK(draws.poisson(0) == 0);
  CHECK_THROWS_WITH(draws.poisson(-1), Catch::Contains("-1"));
  CHECK_THROWS_AS(draws.poisson(std::numeric_limits<double>::quiet_NaN()), gyre::error);
  CHECK_THROWS_AS(draws.poisson(1e7), gyre::error);
}

TEST_CASE("log-normal numbers have normal logarithms", "[random]") {
  random_sequence draws(stream, 6);
  const int trials = 100000;
  double sum = 0, squares = 0, mean = 0;
  for (int i = 0; i < trials; ++i) {
    const double tau = draws.lognormal(1.5, 0.5), z = (std::log(tau) - 1.5) / 0.5;
    sum += z;
    squares += z * z;
    mean += tau / trials;
  }
  const double deviations = 5 / std::sqrt(double(trials)), theory = std::exp(1.5 + 0.125);
  CHECK(std::fabs(sum / trials) < deviations);
  CHECK(std::fabs(squares / trials - 1) < deviations * std::sqrt(2.0));
  CHECK(std::fabs(mean - theory) < deviations * theory * std::sqrt(std::exp(0.25) - 1));
  CHECK_THROWS_WITH(draws.lognormal(0, -2), Catch::Contains("-2"));
}
