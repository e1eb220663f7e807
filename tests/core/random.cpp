// Philox against its published answers; the values made from its words against their distributions.
#include <catch2/catch.hpp>

#include <gyre/core/random.hpp>

#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <set>
#include <vector>

using gyre::counter;
using gyre::purpose;
using gyre::random_stream;
using gyre::seed;

namespace {

// Relative error of x as the normal quantile of p, tail = min(p, 1 - p) and q = p - 1/2 given; from long double's erf, whose
// error is below 1e-18: x - quantile = (Phi(x) - p) / density(x).
double quantile_error(double q, double tail, double x) {
  const long double root = std::sqrt(2.0L), y = x;
  const long double density = std::exp(-y * y / 2) / std::sqrt(2 * std::acos(-1.0L));
  const long double residual =
      std::fabs(q) < 0.25 ? std::erf(y / root) / 2 - q : static_cast<long double>(tail) - std::erfc(std::fabs(y) / root) / 2;
  return x == 0 ? 0 : static_cast<double>(std::fabs(residual / density / y));
}

}  // namespace

TEST_CASE("philox4x32 gives the known answers of Random123", "[random]") {
  using block = std::array<std::uint32_t, 4>;
  CHECK(gyre::philox4x32({0, 0, 0, 0}, {0, 0}) == block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(gyre::philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(gyre::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  static_assert(gyre::philox4x32({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5);
}

TEST_CASE("the normal quantile is accurate to 1e-15 over the whole range of 52-bit numbers", "[random]") {
  double worst = 0;
  const auto check = [&](double tail, bool upper) {
    const double q = upper ? 0.5 - tail : tail - 0.5;
    double x = 0;
    gyre::detail::normal_quantile<1>(&q, &tail, &x);
    const double error = quantile_error(q, tail, x);
    if (error > worst) worst = error;
    REQUIRE(std::signbit(x) == !upper);
  };
  // Multiples of 2^-53, as the streams make them, so that q is exact: geometric in the tail, even in the middle.
  for (double p = 0x1p-53; p < 0.5; p *= 1.0009765625) check(std::ceil(p * 0x1p53) * 0x1p-53, p > 1e-9);
  for (int i = 0; i < 20000; ++i) check((i + 0.5) / 40000, i % 2 == 0);
  for (double edge : {0.075, std::exp(-25.0)})  // where the approximation changes
    for (int ulp = -50; ulp <= 50; ++ulp) check(std::ceil(edge * 0x1p53) * 0x1p-53 + ulp * 0x1p-53, true);
  INFO("worst relative error " << worst);
  CHECK(worst <= 1e-15);
}

TEST_CASE("uniform numbers fill their intervals and no more", "[random]") {
  const random_stream stream(seed{7}, purpose::sampling);
  const int count = 200000;
  double sum = 0, sum_of_squares = 0, least = 1, most = 0;
  for (int i = 0; i < count; ++i) {
    const counter at = counter::of(0, static_cast<std::uint64_t>(i));
    const double u = stream.uniform(at), v = stream.open_uniform(at);
    REQUIRE((u >= 0 && u < 1 && v > 0 && v < 1));
    REQUIRE(std::fabs(u - v) <= 0x1p-52);
    REQUIRE(std::fmod(v * 0x1p53, 2.0) == 1.0);  // an odd multiple of 2^-53
    sum += u;
    sum_of_squares += u * u;
    least = (std::min)(least, u);
    most = (std::max)(most, u);
  }
  const double deviations = 5 / std::sqrt(double(count));
  CHECK(std::fabs(sum / count - 0.5) < deviations * std::sqrt(1.0 / 12));
  CHECK(std::fabs(sum_of_squares / count - 1.0 / 3) < deviations * std::sqrt(4.0 / 45));
  CHECK(least < 20.0 / count);  // fails with probability e^-20
  CHECK(most > 1 - 20.0 / count);
  CHECK(gyre::detail::fraction_of_bits(0) == 0x1p-53);
  CHECK(gyre::detail::fraction_of_bits(~0ull) == 1 - 0x1p-53);
}

TEST_CASE("normal numbers have the moments and the distribution of the normal", "[random]") {
  const random_stream stream(seed{11}, purpose::noise);
  const int count = 1 << 20;
  std::vector<double> x(count);
  stream.fill_normal(std::span(x), {});
  double moment[5] = {};
  std::vector<double> bins(20, 0.0);  // equal probability 1/20
  for (double v : x) {
    for (int k = 1; k <= 4; ++k) moment[k] += std::pow(v, k) / count;
    ++bins[static_cast<std::size_t>((std::min)(19.0, 20 * 0.5 * std::erfc(-v / std::sqrt(2.0))))];
  }
  const double deviations = 5 / std::sqrt(double(count));
  CHECK(std::fabs(moment[1]) < deviations);
  CHECK(std::fabs(moment[2] - 1) < deviations * std::sqrt(2.0));
  CHECK(std::fabs(moment[3]) < deviations * std::sqrt(15.0));
  CHECK(std::fabs(moment[4] - 3) < deviations * std::sqrt(96.0));
  double chi_square = 0;
  for (double b : bins) chi_square += (b - count / 20.0) * (b - count / 20.0) / (count / 20.0);
  CHECK(chi_square < 19 + 5 * std::sqrt(2 * 19.0));
}

TEST_CASE("truncated normal numbers are cut at three sigma and have standard deviation 0.98658 sigma", "[random]") {
  const random_stream stream(seed{3}, purpose::initialisation, 5);
  const int count = 1 << 20;
  const double sigma = std::sqrt(0.4);
  std::vector<double> x(count);
  stream.fill_truncated_normal(std::span(x), {}, sigma);
  double mean = 0, square = 0, fourth = 0, most = 0;
  for (double v : x) {
    mean += v / count;
    square += v * v / count;
    fourth += v * v * v * v / count;
    most = (std::max)(most, std::fabs(v));
    REQUIRE(std::fabs(v) <= 3 * sigma);
  }
  // Even moments of the normal cut at 3, by parts: m_2k = (2k - 1) m_(2k-2) - 2 * 3^(2k-1) density(3) / mass.
  const double density = std::exp(-4.5) / std::sqrt(2 * std::acos(-1.0)), mass = std::erf(3 / std::sqrt(2.0));
  double moment[9] = {1};
  for (int k = 2; k <= 8; k += 2) moment[k] = (k - 1) * moment[k - 2] - 2 * std::pow(3.0, k - 1) * density / mass;
  const double variance = moment[2], kurtosis = moment[4];
  CHECK(std::sqrt(variance) == Approx(0.98658).epsilon(1e-5));
  const double deviations = 5 / std::sqrt(double(count));
  CHECK(std::fabs(mean / sigma) < deviations * std::sqrt(variance));
  CHECK(std::fabs(square / (sigma * sigma) - variance) < deviations * std::sqrt(kurtosis - variance * variance));
  CHECK(std::fabs(fourth / std::pow(sigma, 4) - kurtosis) < deviations * std::sqrt(moment[8] - kurtosis * kurtosis));
  CHECK(most > 2.999 * sigma);  // 14 of 2^20 values lie beyond on average

  // The cut is exact at the extreme words, and the map is the quantile of the truncated distribution.
  for (std::uint64_t word : {0ull, ~0ull, 1ull << 63, 0x123456789abcdefull, 0x0800000000000000ull}) {
    double v = 0;
    gyre::detail::truncated_normal_from_bits<1>(&word, sigma, &v);
    CHECK(std::fabs(v) <= 3 * sigma);
    // An error of 1e-15 in v moves phi by at most 0.24e-15; erfc adds two roundings of numbers up to 2, halved.
    const double u = gyre::detail::fraction_of_bits(word), phi = 0.5 * std::erfc(-v / sigma / std::sqrt(2.0));
    CHECK(std::fabs((phi - 0.5 * std::erfc(3 / std::sqrt(2.0))) / mass - u) < 1e-15);
  }
  const std::uint64_t last = ~0ull;
  double v = 0;
  gyre::detail::truncated_normal_from_bits<1>(&last, 1.0, &v);
  CHECK(v > 3 - 1e-12);
}

TEMPLATE_TEST_CASE("filling equals one call per counter, from any first feature, for any size", "[random]", float, double,
                   std::complex<double>) {
  using real = gyre::real_t<TestType>;
  const random_stream stream(seed{1}, purpose::initial_state);
  for (std::uint32_t start : {0u, 1u, 63u, 1000u, 0xffffff00u})
    for (std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{63}, std::size_t{64}, std::size_t{129}}) {
      const counter first{9, 8, 7, start};
      std::vector<TestType> cut(size + 1, TestType(99)), normal(size + 1, TestType(99));
      stream.fill_truncated_normal(std::span(cut).first(size), first, 0.5);
      stream.fill_normal(std::span(normal).first(size), first, 2);
      for (std::size_t i = 0; i < size; ++i) {
        const counter at{9, 8, 7, start + static_cast<std::uint32_t>(i)};
        REQUIRE(cut[i] == TestType(static_cast<real>(stream.truncated_normal(at, 0.5))));
        REQUIRE(normal[i] == TestType(static_cast<real>(2 * stream.normal(at))));
      }
      REQUIRE(cut[size] == TestType(99));  // nothing written beyond
      REQUIRE(normal[size] == TestType(99));
    }
}

TEST_CASE("the bits of the streams never change", "[random]") {
  // Golden values: they guard seeds written down by users, on every compiler and instruction set.
  const random_stream stream(seed{42}, purpose::initial_state, 3);
  std::vector<double> x(256), y(256);
  stream.fill_truncated_normal(std::span(x), {1, 2, 3, 0}, 0.7);
  stream.fill_normal(std::span(y), {1, 2, 3, 0});
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < 256; ++i) {
    hash = (hash ^ std::bit_cast<std::uint64_t>(x[i])) * 1099511628211u;
    hash = (hash ^ std::bit_cast<std::uint64_t>(y[i])) * 1099511628211u;
  }
  CHECK(stream.bits({1, 2, 3, 4}) == 0xbccaa7b126c5ce45u);
  CHECK(hash == 0xfc2d387e30f9c957u);
}

TEST_CASE("every part of the key and of the counter separates values", "[random]") {
  std::set<std::uint64_t> seen;
  std::size_t count = 0;
  for (std::uint64_t s : {0u, 1u, 2u})
    for (int use = 1; use <= 7; ++use)
      for (std::uint64_t id : {0u, 1u, 2u}) {
        const random_stream stream(seed{s}, static_cast<purpose>(use), id);
        for (std::uint32_t word = 0; word < 16; ++word) {
          seen.insert(stream.bits({word & 1, word >> 1 & 1, word >> 2 & 1, word >> 3 & 1}));
          ++count;
        }
      }
  CHECK(seen.size() == count);
  CHECK(counter::of(0x0000000100000002, 0x0000000300000004) == counter{1, 2, 3, 4});
}

TEST_CASE("neighbouring counters and streams are uncorrelated", "[random]") {
  const int count = 100000;
  const random_stream a(seed{1}, purpose::initial_state), b(seed{2}, purpose::initial_state), c(seed{1}, purpose::noise);
  double next_feature = 0, next_row = 0, next_seed = 0, next_purpose = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const double x = a.normal({0, i, 0, 0});
    next_feature += x * a.normal({0, i, 0, 1});
    next_row += x * a.normal({0, i + 1, 0, 0});
    next_seed += x * b.normal({0, i, 0, 0});
    next_purpose += x * c.normal({0, i, 0, 0});
  }
  for (double sum : {next_feature, next_row, next_seed, next_purpose}) CHECK(std::fabs(sum) < 5 * std::sqrt(double(count)));
}

TEST_CASE("wrong scales and too long rows are refused", "[random]") {
  const random_stream stream(seed{1}, purpose::noise);
  std::vector<float> x(4);
  CHECK_THROWS_WITH(stream.truncated_normal({}, -0.5), Catch::Contains("-0.5"));
  CHECK_THROWS_AS(stream.fill_normal(std::span(x), {}, std::numeric_limits<double>::quiet_NaN()), gyre::error);
  CHECK_THROWS_AS(stream.fill_truncated_normal(std::span(x), {}, std::numeric_limits<double>::infinity()), gyre::error);
  CHECK_THROWS_WITH(stream.fill_normal(std::span(x), {0, 0, 0, 0xfffffffd}), Catch::Contains("4294967293"));
  CHECK_NOTHROW(stream.fill_normal(std::span(x), {0, 0, 0, 0xfffffffc}));
  stream.fill_truncated_normal(std::span(x), {}, 0);
  for (float v : x) CHECK(v == 0);
}
