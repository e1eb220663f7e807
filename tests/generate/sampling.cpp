// Sampling against a straight-line reference, hostile logits, and the distribution of draws.
#include <catch2/catch.hpp>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>
#include <gyre/generate/sampling.hpp>
#include <gyre/parity/suite.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

using gyre::sampling;
using gyre::seed;
using gyre::token;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Logits with a workspace of exactly their size, so that the address sanitizer sees every overrun.
template <class T>
struct problem {
  std::vector<T> logits;
  std::vector<token> history{};
  std::vector<double> probabilities = std::vector<double>(logits.size(), -7);
  std::vector<token> order = std::vector<token>(logits.size(), -7);

  gyre::sampling_workspace workspace() { return {probabilities, order}; }
  const std::vector<double>& distribution(const sampling& rules) {
    gyre::sampling_probabilities(std::span<const T>(logits), history, rules, workspace());
    return probabilities;
  }
  gyre::sampled_token draw(const sampling& rules, double uniform) {
    return gyre::sample(std::span<const T>(logits), history, rules, uniform, workspace());
  }
};
problem<double> logarithms(std::vector<double> probabilities, const std::vector<token>& history = {}) {
  for (double& p : probabilities) p = std::log(p);
  return {probabilities, history};
}

// The same rules in the plainest way: full sorts, long double, one step after the other.
std::vector<long double> reference(const std::vector<double>& logits, const std::vector<token>& history,
                                   const sampling& rules) {
  const std::size_t n = logits.size();
  std::vector<long double> z(logits.begin(), logits.end());
  for (token t : std::set<token>(history.begin(), history.end())) {
    long double& x = z[static_cast<std::size_t>(t)];
    if (x > 0)
      x = x / rules.repetition_penalty;
    else
      x = x * rules.repetition_penalty;
  }
  std::vector<std::size_t> sorted(n);
  for (std::size_t i = 0; i < n; ++i) sorted[i] = i;
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) { return z[a] > z[b]; });
  std::vector<long double> p(n, 0);
  if (rules.greedy || rules.temperature == 0) {
    p[sorted[0]] = 1;
    return p;
  }
  long double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += p[i] = std::exp((z[i] - z[sorted[0]]) / rules.temperature);
  for (auto& x : p) x /= sum;
  if (rules.top_k > 0)
    for (std::size_t i = static_cast<std::size_t>(rules.top_k); i < n; ++i) p[sorted[i]] = 0;
  long double cumulated = 0;
  for (std::size_t i = 0; i < n; ++i) {
    cumulated += p[sorted[i]];
    if (rules.top_p < 1 && i > 0 && cumulated > rules.top_p) p[sorted[i]] = 0;
  }
  const long double most = p[sorted[0]];
  for (auto& x : p)
    if (x < rules.min_p * most) x = 0;
  sum = 0;
  for (auto x : p) sum += x;
  for (auto& x : p) x /= sum;
  return p;
}

}  // namespace

TEMPLATE_TEST_CASE("sampling probabilities agree with a plain reference", "[sampling]", float, double) {
  std::mt19937 random(1);
  const auto pick = [&](std::vector<float> from) { return from[random() % from.size()]; };
  for (int round = 0; round < 3000; ++round) {
    const std::size_t vocabulary = 1 + random() % 40;
    problem<TestType> one{std::vector<TestType>(vocabulary)};
    const bool ties = random() % 2 == 0;
    for (auto& x : one.logits)
      x = ties ? static_cast<TestType>(static_cast<int>(random() % 5) - 2)
               : static_cast<TestType>(std::normal_distribution<double>(0, 3)(random));
    for (std::size_t i = random() % 20; i > 0; --i) one.history.push_back(static_cast<token>(random() % vocabulary));
    sampling rules;
    rules.temperature = pick({0, 1, 1, 0.3f, 2.5f});
    rules.top_p = pick({1, 1, 0.95f, 0.501f, 1e-6f});
    rules.min_p = pick({0, 0, 0.0501f, 0.9f});
    rules.repetition_penalty = pick({1, 1, 1.3f, 0.7f});
    rules.top_k = static_cast<int>(random() % 3 == 0 ? random() % 45 : 0);
    rules.greedy = random() % 20 == 0;

    const auto expected = reference({one.logits.begin(), one.logits.end()}, one.history, rules);
    const auto& got = one.distribution(rules);
    // Exponents up to 100, rounded to 2^-53, put 100 * 2^-53 on a weight; sums of 40 terms add 40 * 2^-53 twice.
    for (std::size_t t = 0; t < vocabulary; ++t) {
      REQUIRE((got[t] == 0) == (expected[t] == 0));
      REQUIRE(std::fabs(static_cast<double>(got[t] - expected[t])) <= 200 * 0x1p-53 * static_cast<double>(expected[t]));
    }
    // The drawn token is the one whose interval of cumulated probability holds the uniform number.
    const double uniform = gyre::sampling_uniform(seed{9}, 1, static_cast<std::uint64_t>(round));
    const auto drawn = one.draw(rules, uniform);
    long double below = 0, total = 0;
    for (std::size_t t = 0; t < vocabulary; ++t) {
      if (t < static_cast<std::size_t>(drawn.id)) below += expected[t];
      total += std::exp(static_cast<long double>(one.logits[t]));
    }
    const long double above = below + expected[static_cast<std::size_t>(drawn.id)];
    REQUIRE((uniform >= below - 1e-13L && uniform < above + 1e-13L));
    REQUIRE(drawn.log_probability ==
            Approx(static_cast<double>(one.logits[static_cast<std::size_t>(drawn.id)] - std::log(total))).margin(1e-13));
  }
}

TEST_CASE("each sampling step alone, on numbers that can be followed by hand", "[sampling]") {
  using expected = std::vector<double>;
  // Probabilities of 1/2, 1/4, 1/8, 1/8 up to the roundings of logarithms.
  auto one = logarithms({0.125, 0.5, 0.125, 0.25});
  const auto check = [&](const sampling& rules, const expected& p) {
    const auto got = one.distribution(rules);
    REQUIRE(got.size() == p.size());
    for (std::size_t t = 0; t < p.size(); ++t) CHECK(got[t] == Approx(p[t]).margin(1e-15));
  };
  check({}, {0.125, 0.5, 0.125, 0.25});
  check({.temperature = 0.5f}, {1 / 22.0, 16 / 22.0, 1 / 22.0, 4 / 22.0});
  check({.top_k = 1}, {0, 1, 0, 0});
  check({.top_k = 2}, {0, 2 / 3.0, 0, 1 / 3.0});
  check({.top_k = 3}, {1 / 7.0, 4 / 7.0, 0, 2 / 7.0});  // the tie goes to the lower id
  check({.top_k = 4}, {0.125, 0.5, 0.125, 0.25});
  check({.top_k = 400}, {0.125, 0.5, 0.125, 0.25});
  check({.top_p = 0.8f}, {0, 2 / 3.0, 0, 1 / 3.0});
  check({.top_p = 0.9f}, {1 / 7.0, 4 / 7.0, 0, 2 / 7.0});
  check({.top_p = 0.1f}, {0, 1, 0, 0});  // the first always stays
  // Not renormalised after top_k: 1/2 + 1/4 is 3/4 of the whole, below 0.8; renormalised it would be 6/7, above.
  check({.top_p = 0.8f, .top_k = 3}, {0, 2 / 3.0, 0, 1 / 3.0});
  check({.min_p = 0.3f}, {0, 2 / 3.0, 0, 1 / 3.0});
  check({.min_p = 0.24f}, {0.125, 0.5, 0.125, 0.25});
  check({.min_p = 1}, {0, 1, 0, 0});
  check({.greedy = true}, {0, 1, 0, 0});
  check({.temperature = 0}, {0, 1, 0, 0});

  // The penalty divides positive logits and multiplies negative ones, once per token, before temperature and greedy choice.
  problem<double> two{{2, 1, -1, 0}, {0, 0, 2, 3}};
  const auto got = two.distribution({.repetition_penalty = 4});
  const double sum = std::exp(0.5) + std::exp(1.0) + std::exp(-4.0) + 1;
  CHECK(got[0] == Approx(std::exp(0.5) / sum).epsilon(1e-15));
  CHECK(got[1] == Approx(std::exp(1.0) / sum).epsilon(1e-15));
  CHECK(got[2] == Approx(std::exp(-4.0) / sum).epsilon(1e-15));
  CHECK(got[3] == Approx(1 / sum).epsilon(1e-15));
  CHECK(two.draw({.greedy = true}, 0.5).id == 0);
  CHECK(two.draw({.repetition_penalty = 4, .greedy = true}, 0.5).id == 1);
  // The reported probability is that of the logits as they came.
  const double plain = std::log(std::exp(2.0) + std::exp(1.0) + std::exp(-1.0) + 1);
  CHECK(two.draw({.repetition_penalty = 4, .greedy = true}, 0.5).log_probability == Approx(1 - plain).epsilon(1e-14));
}

TEST_CASE("hostile logits", "[sampling]") {
  using Catch::Contains;
  const double nan = std::numeric_limits<double>::quiet_NaN(), most = (std::numeric_limits<double>::max)();
  const std::vector<sampling> all{{},
                                  {.greedy = true},
                                  {.temperature = 1e-45f},
                                  {.temperature = 3e38f},
                                  {.top_p = 0.5f},
                                  {.min_p = 0.5f},
                                  {.top_k = 1},
                                  {.repetition_penalty = 1e-38f}};
  for (const sampling& rules : all) {
    CHECK_THROWS_WITH((problem<double>{{0, nan, 1}}.draw(rules, 0.5)), Contains("token 1 is nan"));
    CHECK_THROWS_WITH((problem<double>{{0, 1, infinity}}.draw(rules, 0.5)), Contains("token 2 is inf"));
    CHECK_THROWS_WITH((problem<double>{{-infinity, -infinity}}.draw(rules, 0.5)), Contains("all 2 logits are -inf"));
    CHECK_THROWS_WITH((problem<double>{{}}.draw(rules, 0.5)), Contains("empty"));

    for (double only : {0.0, most, -most, 5e-324}) {
      problem<double> single{{only}, {0}};
      const auto drawn = single.draw(rules, 0.999);
      CHECK(drawn.id == 0);
      CHECK(drawn.log_probability == 0);
      CHECK(single.probabilities[0] == 1);
    }
    problem<double> masked{{-infinity, 3, -infinity}, {0, 1, 2}};
    for (double u : {0.0, 0.5, 1 - 0x1p-53}) CHECK(masked.draw(rules, u).id == 1);

    problem<double> extreme{{-most, most, 0}, {0, 1, 2}};
    CHECK(extreme.draw(rules, 0.5).id == 1);
    problem<float> wide{{-3e38f, 3e38f, 0}, {0, 1, 2}};
    CHECK(wide.draw(rules, 0.5).id == 1);
  }
  // All equal: nothing but the id decides.
  problem<float> equal{std::vector<float>(100, 2.5f)};
  CHECK(equal.draw({.greedy = true}, 0.9).id == 0);
  CHECK(equal.draw({}, 0.4999).id == 49);
  CHECK(equal.draw({.top_k = 3}, 0.9999).id == 2);
  CHECK(equal.draw({.top_p = 0.255f}, 0.9999).id == 24);
  CHECK(equal.draw({.min_p = 1}, 0.9999).id == 99);
  CHECK(equal.draw({}, 0).id == 0);
  CHECK(equal.draw({}, 1 - 0x1p-53).id == 99);
}

TEST_CASE("wrong rules, histories and workspaces are refused with their numbers", "[sampling]") {
  using Catch::Contains;
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH((sampling{.temperature = -0.5f}.validate()), Contains("temperature is -0.5"));
  CHECK_THROWS_WITH((sampling{.temperature = nan}.validate()), Contains("nan"));
  CHECK_THROWS_AS((sampling{.temperature = inf}.validate()), gyre::error);
  for (float p : {0.0f, -0.1f, 1.1f, nan}) CHECK_THROWS_AS((sampling{.top_p = p}.validate()), gyre::error);
  for (float p : {-0.1f, 1.1f, nan}) CHECK_THROWS_AS((sampling{.min_p = p}.validate()), gyre::error);
  for (float p : {0.0f, -1.0f, inf, nan}) CHECK_THROWS_AS((sampling{.repetition_penalty = p}.validate()), gyre::error);
  CHECK_THROWS_WITH((sampling{.top_k = -3}.validate()), Contains("top_k is -3"));
  CHECK_NOTHROW(sampling{}.validate());

  problem<float> one{{1, 2, 3}};
  CHECK_THROWS_AS(one.draw({.temperature = -1}, 0.5), gyre::error);
  CHECK_THROWS_WITH(one.draw({}, 1.0), Contains("uniform number is 1"));
  CHECK_THROWS_AS(one.draw({}, std::numeric_limits<double>::quiet_NaN()), gyre::error);
  for (token t : {3, -1}) {
    one.history = {0, t};
    CHECK_THROWS_WITH(one.draw({.repetition_penalty = 2}, 0.5), Contains("token " + std::to_string(t)));
  }
  one.order.pop_back();
  CHECK_THROWS_WITH(one.draw({}, 0.5), Contains("2 ids for a vocabulary of 3"));
}

TEST_CASE("draws follow the probabilities and are keyed by seed, sequence and position", "[sampling]") {
  auto one = logarithms({0.05, 0.3, 0.1, 0.2, 0.35});
  const sampling rules{.temperature = 1.5f, .top_k = 4};
  const std::vector<double> p = one.distribution(rules);
  std::vector<double> counts(5, 0.0);
  const int trials = 50000;
  for (int i = 0; i < trials; ++i) {
    const double u = gyre::sampling_uniform(seed{4}, static_cast<std::uint64_t>(i % 50), static_cast<std::uint64_t>(i / 50));
    ++counts[static_cast<std::size_t>(one.draw(rules, u).id)];
  }
  CHECK(counts[0] == 0);
  double chi_square = 0;
  for (std::size_t t = 1; t < 5; ++t) chi_square += std::pow(counts[t] - trials * p[t], 2) / (trials * p[t]);
  CHECK(chi_square < 3 + 5 * std::sqrt(6.0));

  const double u = gyre::sampling_uniform(seed{4}, 1, 2);
  CHECK(u == gyre::sampling_uniform(seed{4}, 1, 2));
  CHECK(u != gyre::sampling_uniform(seed{5}, 1, 2));
  CHECK(u != gyre::sampling_uniform(seed{4}, 2, 2));
  CHECK(u != gyre::sampling_uniform(seed{4}, 1, 3));
}

TEMPLATE_TEST_CASE("the cpu's operation draws what sample draws, to the bit, on any number of threads", "[sampling][threads]",
                   float, double) {
  constexpr gyre::index rows = 40, vocabulary = 700;
  const gyre::random_stream noise(gyre::seed{3}, gyre::purpose::task);
  std::vector<TestType> logits(rows * vocabulary);
  std::vector<gyre::sampling_row> choices(rows);
  std::vector<token> histories{3, 9, 21, 9, 699};
  for (std::uint32_t i = 0; i < rows; ++i) {
    for (std::uint32_t t = 0; t < vocabulary; ++t)
      logits[i * vocabulary + t] = static_cast<TestType>(noise.normal({.row = i, .feature = t}) * (i % 3 == 0 ? 8 : 1));
    if (i % 4 == 0)
      for (std::uint32_t t = 0; t < vocabulary; ++t)
        logits[i * vocabulary + t] = std::round(logits[i * vocabulary + t]);  // ties
    gyre::sampling_row& row = choices[i];
    row.rules = {i % 7 == 0 ? 0.0f : 0.7f, i % 2 == 0 ? 0.9f : 1.0f, i % 5 == 0 ? 0.1f : 0.0f,
                 i % 3 == 0 ? 2.0f : 1.0f, i % 4 == 1 ? 30 : 0,      i % 9 == 8};
    row.uniform = noise.uniform({.row = i, .feature = 999});
    row.history = i % 3, row.history_size = 2 + i % 2;
    row.id_only = i % 6 >= 4;
  }
  logits[5 * vocabulary + 17] = static_cast<TestType>(NAN);
  logits[28 * vocabulary + 17] = static_cast<TestType>(infinity);  // greedy and without a probability
  std::fill_n(logits.begin() + 6 * vocabulary, vocabulary, static_cast<TestType>(-infinity));
  const gyre::matrix_view<const TestType> all(logits.data(), rows, vocabulary);
  for (const int threads : {1, 3}) {
    std::vector<token> chosen(rows, -7);
    std::vector<double> log_probabilities(rows, -7);
    gyre::cpu(threads).sample(all, std::span<const gyre::sampling_row>(choices), std::span<const token>(histories),
                              chosen.data(), log_probabilities.data());
    std::vector<double> probabilities(vocabulary);
    std::vector<token> order(vocabulary);
    for (std::size_t i = 0; i < rows; ++i) {
      CAPTURE(threads, i);
      const gyre::sampling_row& row = choices[i];
      gyre::sampled_token expected{-1, 0};
      if (i != 5 && i != 6 && i != 28)
        expected = gyre::sample(std::span<const TestType>(all[static_cast<gyre::index>(i)], vocabulary),
                                gyre::detail::history_of(row, histories), row.rules, row.uniform, {probabilities, order});
      CHECK(chosen[i] == expected.id);
      CHECK(log_probabilities[i] == (row.id_only ? 0 : expected.log_probability));
    }
  }
}

TEMPLATE_TEST_CASE("the cpu's operation agrees with the reference", "[sampling]", float, double) {
  namespace parity = gyre::parity;
  gyre::reference left;
  gyre::cpu right(2);
  const parity::outcome o = parity::run_check(parity::check_of<gyre::operation::sample, TestType>(left, right), {.trials = 60});
  INFO(o.failure);
  CHECK(o.passed());
  CHECK(o.worst.excess <= 1);
  CHECK(o.elements > 0);
}
