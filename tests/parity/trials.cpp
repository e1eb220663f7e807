// Trials: their text, how they are drawn and shrunk, what bounded numbers bound.
#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gyre/parity/bounded.hpp>
#include <gyre/parity/report.hpp>
#include <gyre/parity/trial.hpp>

#include "support/words.hpp"

namespace gyre_test {

namespace parity = gyre::parity;
using gyre::index, gyre::operation;
using number = parity::bounded<float>;

namespace {

constexpr std::array dimensions{parity::dimension{"rows", {0, 1, 7, 129}}, parity::dimension{"cols", {1, 2, 40}}, parity::gap,
                                parity::special};

}  // namespace

TEST_CASE("a trial is read back from the command line that it writes", "[parity]") {
  for (index n = 0; n < 20; ++n) {
    const parity::trial t = parity::draw_trial(operation::rms_norm, "double", dimensions, 77, n);
    const parity::trial again = parity::read_trial(words_of("program " + t.text() + " --other 3"));
    CHECK(again.of == t.of);
    CHECK(again.type == "double");
    CHECK(again.seed == t.seed);
    CHECK(again.sizes == t.sizes);
  }
  CHECK(parity::read_trial({}).of == operation::count);
  const auto read = [](const char* text) { return parity::read_trial(words_of(text)); };
  CHECK_THROWS_WITH(read("--operation rms"), Catch::Contains("no operation rms"));
  CHECK_THROWS_WITH(read("--sizes rows"), Catch::Contains("rows; it is written rows=7"));
  CHECK_THROWS_WITH(read("--sizes rows=7x"), Catch::Contains("rows is 7x"));
  CHECK_THROWS_WITH(read("--seed -1"), Catch::Contains("--seed is -1"));
}

TEST_CASE("every value of every dimension is drawn", "[parity]") {
  std::set<std::pair<std::string, index>> seen;
  for (index n = 0; n < 60; ++n)
    for (const auto& size : parity::draw_trial(operation::add, "float", dimensions, 5, n).sizes) seen.insert(size);
  for (const parity::dimension& d : dimensions)
    for (std::size_t v = 0; v < d.count; ++v) {
      CAPTURE(d.name, d.values[v]);
      CHECK(seen.contains({std::string(d.name), d.values[v]}));
    }
}

TEST_CASE("shrinking ends at the smallest sizes that fail", "[parity]") {
  parity::trial t = parity::draw_trial(operation::add, "float", dimensions, 5, 0);
  t.set("rows", 129), t.set("cols", 40), t.set("gap", 3), t.set("special", 2);
  int tries = 0;
  const parity::trial least = parity::shrink(t, dimensions, [&](const parity::trial& less) {
    ++tries;
    return less["rows"] * less["cols"] >= 12 && less["rows"] >= 3;
  });
  CHECK(least["rows"] * least["cols"] == 12);
  CHECK(least["gap"] == 0);
  CHECK(least["special"] == 0);
  CHECK(tries < 100);
}

TEST_CASE("bounded numbers bound what any order of the sum gives, and by the contract's rule", "[parity]") {
  // 1000 terms of both signs, added forwards, backwards and in eight partial sums.
  constexpr int count = 1000;
  std::vector<float> terms;
  for (int i = 0; i < count; ++i) terms.push_back(static_cast<float>(std::sin(3.1 * i) * std::exp(0.01 * i)));
  number sum(0);
  long double exact = 0, size = 0;
  for (const float x : terms) sum += number(x), exact += x, size += std::fabs(x);
  CHECK(sum.value() == exact);
  const long double eps = std::numeric_limits<float>::epsilon();
  CHECK(sum.error() <= 2 * count * eps * size);
  CHECK(sum.error() >= 1.9L * count * eps * size);
  float forwards = 0, backwards = 0, partial[8] = {}, pieces = 0;
  for (int i = 0; i < count; ++i) {
    forwards += terms[static_cast<std::size_t>(i)];
    backwards += terms[static_cast<std::size_t>(count - 1 - i)];
    partial[i % 8] += terms[static_cast<std::size_t>(i)];
  }
  for (const float p : partial) pieces += p;
  for (const float got : {forwards, backwards, pieces}) CHECK(std::fabs(got - exact) <= sum.error());
}

TEST_CASE("bounded numbers know which numbers are exact, and round the others", "[parity]") {
  CHECK(number(0.5).error() == 0);
  CHECK(number(3).error() == 0);
  CHECK(number(0.1).error() > 0);
  CHECK(number(0.1).error() <= 1e-8L);
  CHECK(parity::bounded<double>(0.1).error() == 0);
  CHECK((number(0.1F) + number(0)).error() == 0);
  CHECK((number(0) + number(0.1F)).error() == 0);
  CHECK((number(0.1F) + number(0.2F)).error() > 0);
  const number x(0.1F);
  CHECK((x * x).error() >= std::fabs(static_cast<long double>(0.1F * 0.1F) - x.value() * x.value()));
  CHECK((number(1) / number(3)).error() > 0);
  // The derivative carries the error: exp(x + e) = exp(x) (1 + e).
  const number wide(2.0L, 1e-3L);
  CHECK(exp(wide).error() >= std::exp(2.001L) - std::exp(2.0L));
  CHECK(log(wide).error() >= std::log(2.0L) - std::log(1.999L) - 1e-6L);
  CHECK(sqrt(number(0.0L, 1e-6L)).error() >= 1e-3L);
  CHECK(exp(number(1000)).error() == std::numeric_limits<long double>::infinity());
  CHECK(number(parity::bounded<double>(0.1)).error() >= std::fabs(0.1L - static_cast<long double>(0.1F)));
  CHECK(parity::bounded<double>(number(0.5)).error() == 0);
  const number vanished = number(1) / (number(1) + exp(number(1000)));
  CHECK(vanished.error() >= vanished.value());
}

TEST_CASE("an error where none may be counts as infinite, and any number that is not finite as the other", "[parity]") {
  const long double nan = std::numeric_limits<long double>::quiet_NaN(),
                    infinity = std::numeric_limits<long double>::infinity();
  using parity::detail::excess;
  CHECK(excess(1, 1, 0) == 0);
  CHECK(excess(1.5L, 1, 1) == 0.5);
  CHECK(std::isinf(excess(1.5L, 1, 0)));
  CHECK(std::isinf(excess(nan, 1, 1)));
  CHECK(std::isinf(excess(infinity, 1, 1)));
  CHECK(std::isinf(excess(1.5L, 1, nan)));
  CHECK(excess(nan, nan, nan) == 0);
  CHECK(excess(nan, infinity, 0) == 0);
  CHECK(std::isinf(excess(1, nan, 0)));
}

}  // namespace gyre_test
