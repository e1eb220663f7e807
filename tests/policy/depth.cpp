// Depth rules: exact splits, moments against theory, curricula, determinism, wrong fields.
#include <catch2/catch.hpp>

#include <gyre/policy/depth.hpp>

#include <cmath>
#include <limits>
#include <vector>

using gyre::curriculum;
using gyre::depth_draw;
using gyre::fixed_depth;
using gyre::lognormal_poisson;
using gyre::seed;
using gyre::uniform_depth;

static_assert(gyre::depth_rule<fixed_depth> && gyre::depth_rule<uniform_depth> && gyre::depth_rule<lognormal_poisson>);
static_assert(gyre::depth_rule<curriculum<lognormal_poisson>> && gyre::depth_rule<curriculum<fixed_depth>>);
static_assert(!gyre::depth_rule<int>);

TEST_CASE("a draw is n = max(r - k, 0) steps without gradient, then min(k, r) with", "[depth]") {
  CHECK(depth_draw::of(33, 8) == depth_draw{25, 8});
  CHECK(depth_draw::of(8, 8) == depth_draw{0, 8});
  CHECK(depth_draw::of(3, 8) == depth_draw{0, 3});
  CHECK(depth_draw::of(9, 8) == depth_draw{1, 8});
  CHECK(depth_draw::of(5, 0) == depth_draw{0, 5});
  CHECK(depth_draw{25, 8}.total() == 33);
  CHECK(depth_draw::larger({25, 3}, {4, 8}) == depth_draw{25, 8});
}

TEST_CASE("fixed depth is fixed", "[depth]") {
  const fixed_depth rule{8, 3};
  for (std::uint64_t step : {1u, 2u, 1000000u}) CHECK(rule.draw(seed{step}, step) == depth_draw{5, 3});
  CHECK(rule.mean_depth() == 8);
  CHECK(rule.most_draw() == depth_draw{5, 3});
  CHECK(fixed_depth{8}.draw(seed{}, 1) == depth_draw{0, 8});
}

TEST_CASE("uniform depth draws every depth equally often", "[depth]") {
  const uniform_depth rule{1, 6, 4};
  std::vector<int> counts(7, 0);
  const int trials = 60000;
  for (int t = 1; t <= trials; ++t) {
    const depth_draw d = rule.draw(seed{1}, static_cast<std::uint64_t>(t));
    REQUIRE((d.total() >= 1 && d.total() <= 6));
    REQUIRE(d == depth_draw::of(d.total(), 4));
    ++counts[static_cast<std::size_t>(d.total())];
  }
  for (int r = 1; r <= 6; ++r)
    CHECK(std::fabs(counts[static_cast<std::size_t>(r)] - trials / 6.0) < 5 * std::sqrt(trials * 5 / 36.0));
  CHECK(rule.mean_depth() == 3.5);
  CHECK(rule.most_draw() == depth_draw{2, 4});
  CHECK(uniform_depth{1, 6}.most_draw() == depth_draw{0, 6});
}

TEST_CASE("log-normal Poisson depth has mean rbar + 1 and the variance of its mixture", "[depth]") {
  const double sigma = 0.5;
  for (double mean : {1.0, 8.0, 32.0}) {
    const lognormal_poisson rule{.mean = mean, .backprop = 8};
    const int trials = 200000;
    double sum = 0, squares = 0;
    int beyond = 0, most = 0;
    for (int t = 1; t <= trials; ++t) {
      const depth_draw d = rule.draw(seed{2}, static_cast<std::uint64_t>(t));
      const int p = d.total();
      REQUIRE(d.free_steps == (std::max)(p - 8, 0));
      REQUIRE(d.gradient_steps == (std::min)(8, p));
      REQUIRE(p >= 1);
      sum += p;
      squares += (p - 1 - mean) * (p - 1 - mean);
      beyond += depth_draw::larger(d, rule.most_draw()) != rule.most_draw();
      most = (std::max)(most, p);
    }
    // X = p - 1: E X = m, Var X = m + v with v = m^2 (e^{s^2} - 1). Central fourth moment from the raw ones of tau,
    // E tau^k = m^k e^{s^2 k (k - 1) / 2}, through Touchard: E X^2 = T1 + T2,
    // E X^3 = T1 + 3 T2 + T3, E X^4 = T1 + 7 T2 + 6 T3 + T4.
    const double m = mean, variance = m + m * m * (std::exp(sigma * sigma) - 1);
    const auto raw = [&](int k) { return std::pow(m, k) * std::exp(sigma * sigma * k * (k - 1) / 2); };
    const double x2 = raw(1) + raw(2), x3 = raw(1) + 3 * raw(2) + raw(3), x4 = raw(1) + 7 * raw(2) + 6 * raw(3) + raw(4);
    const double fourth = x4 - 4 * m * x3 + 6 * m * m * x2 - 3 * m * m * m * m;
    CHECK(std::fabs(sum / trials - (mean + 1)) < 5 * std::sqrt(variance / trials));
    CHECK(std::fabs(squares / trials - variance) < 5 * std::sqrt((fourth - variance * variance) / trials));
    CHECK(beyond <= 3);  // 0.2 expected at most
    CHECK(rule.most_draw().gradient_steps == 8);
    CHECK(rule.most_draw().total() < 2.5 * most);
    CHECK(rule.mean_depth() == mean);
  }
  // The quantile behind most_draw, and its Poisson part alone, where the exact tail can be summed.
  CHECK(std::erfc(4.892 / std::sqrt(2.0)) / 2 <= 5e-7);
  const int most = lognormal_poisson{.mean = 20, .backprop = 4, .sigma = 0}.most_draw().total();
  double tail = 0;
  for (int k = most; k < 400; ++k) tail += std::exp(k * std::log(20.0) - 20 - std::lgamma(k + 1.0));
  CHECK(tail < 5e-7);
  CHECK(tail > 1e-9);
}

TEST_CASE("draws depend on seed, step and micro-batch alone", "[depth]") {
  const lognormal_poisson rule{.mean = 32, .backprop = 8};
  int other_seed = 0, other_step = 0, other_batch = 0;
  for (std::uint64_t t = 1; t <= 100; ++t) {
    const depth_draw d = rule.draw(seed{3}, t);
    CHECK(d == rule.draw(seed{3}, t));
    CHECK(d == rule.draw(seed{3}, t, 0));
    other_seed += d == rule.draw(seed{4}, t);
    other_step += d == rule.draw(seed{3}, t + 1000);
    other_batch += d == rule.draw(seed{3}, t, 1);
  }
  // Two independent draws agree with probability about 0.02; more than 20 of 100 never happens.
  CHECK(other_seed < 20);
  CHECK(other_step < 20);
  CHECK(other_batch < 20);
}

TEST_CASE("a curriculum grows the mean as 1 + (rbar - 1)(1 - sqrt(1 - u))", "[depth]") {
  const curriculum<lognormal_poisson> rule{{.mean = 33, .backprop = 8}, 400};
  CHECK(rule.at(0).mean == 1);
  CHECK(rule.at(100).mean == Approx(1 + 32 * (1 - std::sqrt(2.0 / 3))).epsilon(1e-15));
  CHECK(rule.at(225).mean == 17);  // u = 3/4
  CHECK(rule.at(300).mean == 33);
  CHECK(rule.at(400).mean == 33);
  CHECK(rule.at(500).mean == 33);
  CHECK(rule.at(225).backprop == 8);
  CHECK(rule.mean_depth() == 33);
  CHECK(rule.most_draw() == rule.rule.most_draw());
  for (std::uint64_t t : {1u, 225u, 400u}) CHECK(rule.draw(seed{1}, t) == rule.at(t).draw(seed{1}, t));
  CHECK(rule.draw(seed{1}, 400) == rule.rule.draw(seed{1}, 400));

  const curriculum fixed{fixed_depth{9, 4}, 400};
  CHECK(fixed.draw(seed{}, 1).total() == 1);
  CHECK(fixed.draw(seed{}, 225).total() == 5);
  CHECK(fixed.draw(seed{}, 300) == depth_draw{5, 4});
  const curriculum uniform{uniform_depth{3, 9}, 400};
  CHECK(uniform.at(225).low == 2);
  CHECK(uniform.at(225).high == 5);
  CHECK(uniform.at(400).high == 9);
}

TEST_CASE("fields that make no depth rule are refused with their numbers", "[depth]") {
  using Catch::Contains;
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH((fixed_depth{0}.draw(seed{}, 1)), Contains("steps is 0"));
  CHECK_THROWS_WITH((fixed_depth{-3}.mean_depth()), Contains("-3"));
  CHECK_THROWS_WITH((fixed_depth{4, -1}.draw(seed{}, 1)), Contains("backprop is -1"));
  CHECK_THROWS_WITH((uniform_depth{5, 4}.draw(seed{}, 1)), Contains("low is 5 and high is 4"));
  CHECK_THROWS_AS((uniform_depth{0, 4}.draw(seed{}, 1)), gyre::error);
  CHECK_THROWS_WITH((lognormal_poisson{.mean = 0}.draw(seed{}, 1)), Contains("mean is 0"));
  CHECK_THROWS_AS((lognormal_poisson{.mean = nan}.most_draw()), gyre::error);
  CHECK_THROWS_AS((lognormal_poisson{.mean = infinity}.draw(seed{}, 1)), gyre::error);
  CHECK_THROWS_WITH((lognormal_poisson{.mean = 1e6}.draw(seed{}, 1)), Contains("1e+06"));
  CHECK_THROWS_WITH((lognormal_poisson{.mean = 8, .backprop = -2}.draw(seed{}, 1)), Contains("-2"));
  CHECK_THROWS_WITH((lognormal_poisson{.mean = 8, .sigma = -0.5}.draw(seed{}, 1)), Contains("-0.5"));
  CHECK_THROWS_AS((lognormal_poisson{.mean = 8, .sigma = nan}.draw(seed{}, 1)), gyre::error);
  CHECK_THROWS_WITH((curriculum<fixed_depth>{{8}, 0}.draw(seed{}, 1)), Contains("total_steps is 0"));
  CHECK_THROWS_AS((curriculum<lognormal_poisson>{{.mean = 0.5}, 10}.draw(seed{}, 1)), gyre::error);
}
