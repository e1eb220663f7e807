// Routing against the reference: the same experts, gates and gradients within the contract's tolerance. [own_unit]
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>

#include "routing_checks.hpp"
#include "support/compare.hpp"

namespace gyre_test {
namespace {

using gyre::cpu, gyre::reference;

/// The smallest selection score chosen minus the largest one not chosen, exactly.
template <class T>
exact gap(matrix_view<const T> scores, const T* bias, double scale, const std::int32_t* chosen, index active, index row) {
  exact in = std::numeric_limits<exact>::infinity(), out = -in;
  for (index e = 0; e < scores.cols; ++e) {
    const exact score = static_cast<exact>(scale) * scores[row][e] + (bias != nullptr ? exact(bias[e]) : 0);
    if (std::find(chosen, chosen + active, e) != chosen + active)
      in = std::min(in, score);
    else
      out = std::max(out, score);
  }
  return in - out;
}

template <class T>
T largest(const std::vector<T>& x) {
  T most = 0;
  for (const T v : x) most = std::max(most, std::fabs(v));
  return most;
}

}  // namespace

TEMPLATE_TEST_CASE("route chooses what the reference chooses, with its gates", "[routing]", float, double) {
  using T = TestType;
  for (const sizes& s : routing_cases)
    for (const bool biased : {false, true})
      for (const double scale : {0.125, 1.0, -0.3, 7.1}) {
        CAPTURE(s.rows, s.experts, s.active, biased, scale);
        const auto scores = random_grid<T>(s.rows, s.experts, 1, 4), bias_values = random_grid<T>(1, s.experts, 2);
        const T* const bias = biased ? bias_values.data() : nullptr;
        const auto got = route_with(cpu(2), scores.read(), bias, scale, s.active);
        const auto wide_scores = scores.template as<exact>(), wide_bias = bias_values.template as<exact>();
        const auto want = route_with(reference(), wide_scores.read(),
                                     static_cast<const exact*>(biased ? wide_bias.data() : nullptr), scale, s.active);
        // Two roundings of scale * x (|x| below 33) and one of the sum, for each of the two scores that are compared.
        const exact bound = 2 * (3 * std::fabs(static_cast<exact>(scale)) * 33 + 9) * epsilon<T>;
        for (index i = 0; i < s.rows; ++i) {
          const auto* const a = got.chosen.data() + i * s.active;
          if (!std::equal(a, a + s.active, want.chosen.data() + i * s.active))
            CHECK(std::fabs(gap(scores.read(), bias, scale, a, s.active, i)) <= bound);
        }
        // Scales that are powers of two: scale * x is exact, so both round a sum once and the choices are equal, ties and all.
        if (scale == 1.0 || scale == 0.125)
          CHECK(got.chosen == route_with(reference(), scores.read(), bias, scale, s.active).chosen);
        if (got.chosen != want.chosen) continue;
        // A gate's relative error: twice (its logit's error + 8 for the functions + the sum's).
        const exact relative = 2 * (2 * largest(want.logits) + 8 + 2 * static_cast<exact>(s.active)) * epsilon<T>;
        const exact least = 8 * std::numeric_limits<T>::min();
        CHECK(differences(as_matrix(got.logits, s.rows), as_matrix(want.logits, s.rows),
                          2 * largest(want.logits) * epsilon<T> + least) == "");
        CHECK(differences(as_matrix(got.gates, s.rows), as_matrix(want.gates, s.rows),
                          [&](index i, index j) { return relative * as_matrix(want.gates, s.rows)[i][j] + least; }) == "");

        // Gradients, from the same logits and gates on both sides.
        const auto d_gates = random_grid<T>(s.rows, s.active, 3, 1, 0);
        grid<T> dx(s.rows, s.experts);
        grid<exact> dx_want(s.rows, s.experts);
        const auto logits = widened(got.logits), gates = widened(got.gates);
        const auto wide_d_gates = d_gates.template as<exact>();
        cpu(2).route_backward(static_cast<const T*>(got.logits.data()), static_cast<const T*>(got.gates.data()),
                              got.chosen.data(), static_cast<const T*>(d_gates.data()), scale, s.active, dx.view());
        reference().route_backward(logits.data(), gates.data(), got.chosen.data(),
                                   static_cast<const exact*>(wide_d_gates.data()), scale, s.active, dx_want.view());
        // g (dg - sum g dg) with |dg| below 5: the sum has 2 k eps of its terms, the rest 8 eps.
        CHECK(differences(dx.read(), dx_want.view(), [&](index, index) {
                return std::fabs(static_cast<exact>(scale)) * 10 * (8 + 2 * static_cast<exact>(s.active)) * epsilon<T>;
              }) == "");
        CHECK(dx.margins_intact());
      }
}

TEMPLATE_TEST_CASE("ties go to the lower expert, whatever way they are found", "[routing]", float, double) {
  using T = TestType;
  for (const index experts : {1, 2, 15, 64, 259, 700})
    for (index active = 1; active <= experts; active += active < 20 ? 1 : 37) {
      CAPTURE(experts, active);
      grid<T> scores(5, experts);
      for (index e = 0; e < experts; ++e) {
        scores[0][e] = T(0.5);                     // all equal
        scores[1][e] = e % 2 == 0 ? T(0) : -T(0);  // equal, though their bits are not
        scores[2][e] = static_cast<T>(e % 3);      // equal in groups
        scores[3][e] = static_cast<T>(-(e * e) % 7);
        scores[4][e] = e == 5 ? T(3) : T(2);  // equal below the best
      }
      const auto got = route_with(cpu(1), scores.read(), static_cast<const T*>(nullptr), 1.0, active);
      CHECK(got.chosen == route_with(reference(), scores.read(), static_cast<const T*>(nullptr), 1.0, active).chosen);
      for (index j = 0; j < 2 * active; ++j) CHECK(got.chosen[static_cast<std::size_t>(j)] == j % active);
    }
}

TEMPLATE_TEST_CASE("the bias decides who is chosen and leaves the gates alone", "[routing]", float, double) {
  using T = TestType;
  for (const index active : {1, 3, 20}) {
    constexpr index experts = 40;
    grid<T> scores(1, experts), bias(1, experts);
    for (index e = 0; e < experts; ++e) scores[0][e] = static_cast<T>(e), bias[0][e] = static_cast<T>(-2 * e);
    const auto plain = route_with(cpu(1), scores.read(), static_cast<const T*>(nullptr), 0.25, active);
    const auto biased = route_with(cpu(1), scores.read(), static_cast<const T*>(bias.data()), 0.25, active);
    for (index j = 0; j < active; ++j) {
      CHECK(plain.chosen[static_cast<std::size_t>(j)] == experts - active + j);
      CHECK(biased.chosen[static_cast<std::size_t>(j)] == j);
      CHECK(biased.logits[static_cast<std::size_t>(j)] == T(0.25) * static_cast<T>(j));
    }
    // A bias that changes nothing about the order changes no bit of a gate.
    for (index e = 0; e < experts; ++e) bias[0][e] = static_cast<T>(100 + e);
    CHECK(route_with(cpu(1), scores.read(), static_cast<const T*>(bias.data()), 0.25, active).gates == plain.gates);
  }
}

TEMPLATE_TEST_CASE("scores that are not finite still give experts that exist", "[routing]", float, double) {
  using T = TestType;
  constexpr T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity(),
              huge = std::numeric_limits<T>::max(), tiny = std::numeric_limits<T>::denorm_min();
  for (const index experts : {1, 3, 16, 67})
    for (const index active : {index{1}, index{2}, index{16}, index{17}, experts - 1, experts}) {
      if (active < 1 || active > experts) continue;
      CAPTURE(experts, active);
      const T specials[] = {nan, infinity, -infinity, huge, -huge, tiny, -tiny, T(0), -T(0), T(1)};
      grid<T> scores(12, experts), bias(1, experts);
      for (index e = 0; e < experts; ++e) {
        for (index i = 0; i < 10; ++i) scores[i][e] = specials[i];
        scores[10][e] = specials[e * 7 % 10];
        scores[11][e] = e % 5 == 4 ? T(2) : nan;
        bias[0][e] = e % 4 == 1 ? -infinity : e % 4 == 2 ? nan : T(0);
      }
      for (const T* b : {static_cast<const T*>(nullptr), static_cast<const T*>(bias.data())}) {
        const auto got = route_with(cpu(2), scores.read(), b, 2.0, active);
        for (index i = 0; i < 12; ++i)
          for (index j = 0; j < active; ++j) {
            const auto at = static_cast<std::size_t>(i * active + j);
            CHECK((got.chosen[at] >= 0 && got.chosen[at] < experts));
            if (j > 0) CHECK(got.chosen[at] > got.chosen[at - 1]);
          }
        CHECK(got.chosen == route_with(reference(), scores.read(), b, 2.0, active).chosen);
      }
      // NaN counts as the lowest: numbers are chosen first.
      const auto got = route_with(cpu(1), scores.read(), static_cast<const T*>(nullptr), 2.0, active);
      for (index j = 0, numbers = experts / 5; j < std::min(active, numbers); ++j)
        CHECK(std::count_if(got.chosen.end() - active, got.chosen.end(), [](int e) { return e % 5 == 4; }) ==
              std::min(active, numbers));
    }
}

TEMPLATE_TEST_CASE("gates sum to 1 however negative all logits are", "[routing]", float, double) {
  using T = TestType;
  for (const double offset : {-1e3, -1e5, 0.0, 1e3, 1e5})
    for (const index active : {2, 5, 30}) {
      auto scores = random_grid<T>(20, 40, 1);
      for (index i = 0; i < 20; ++i)
        for (index e = 0; e < 40; ++e) scores[i][e] += static_cast<T>(offset);
      const auto got = route_with(cpu(1), scores.read(), static_cast<const T*>(nullptr), 1.0, active);
      for (index i = 0; i < 20; ++i) {
        exact sum = 0;
        for (index j = 0; j < active; ++j) sum += got.gates[static_cast<std::size_t>(i * active + j)];
        CAPTURE(offset, active, i);
        CHECK(std::fabs(sum - 1) <= (2 * static_cast<exact>(active) + 8) * epsilon<T>);
      }
    }
}

TEMPLATE_TEST_CASE("routing has the same bits for any number of threads and of rows", "[routing][threads]", float, double) {
  using T = TestType;
  for (const sizes& s : {sizes{300, 64, 4}, sizes{300, 300, 40}, sizes{2000, 8, 1}}) {
    const auto scores = random_grid<T>(s.rows, s.experts, 1), bias = random_grid<T>(1, s.experts, 2);
    const auto one = route_with(cpu(1), scores.read(), static_cast<const T*>(bias.data()), 0.3, s.active);
    const auto layout = ragged({s.rows - 50, 50});
    const auto losses_of = [&](int threads) {
      cpu b(threads);
      std::vector<T> losses(2);
      b.router_loss(scores.read(), 0.3, one.chosen.data(), s.active, layout, {0.1, 0.2}, losses.data());
      return losses;
    };
    const auto gradient_of = [&](int threads) {
      cpu b(threads);
      grid<T> d(s.rows, s.experts);
      b.route_backward(static_cast<const T*>(one.logits.data()), static_cast<const T*>(one.gates.data()), one.chosen.data(),
                       static_cast<const T*>(one.gates.data()), 0.3, s.active, d.view());
      b.router_loss_backward(scores.read(), 0.3, one.chosen.data(), s.active, layout, {0.1, 0.2}, T(2), d.view());
      return d;
    };
    const auto gradient = gradient_of(1);
    for (const int threads : {2, 3}) {
      const auto more = route_with(cpu(threads), scores.read(), static_cast<const T*>(bias.data()), 0.3, s.active);
      CHECK((more.chosen == one.chosen && more.logits == one.logits && more.gates == one.gates));
      CHECK(losses_of(threads) == losses_of(1));
      CHECK(bit_differences(gradient_of(threads).view(), gradient.view()) == "");
    }
    for (const index row : {index{0}, index{17}, s.rows - 1}) {
      const auto alone = route_with(cpu(1), scores.read().slice(row, 1), static_cast<const T*>(bias.data()), 0.3, s.active);
      const auto at = row * s.active;
      CHECK(std::equal(alone.chosen.begin(), alone.chosen.end(), one.chosen.begin() + at));
      CHECK(std::equal(alone.logits.begin(), alone.logits.end(), one.logits.begin() + at));
      CHECK(std::equal(alone.gates.begin(), alone.gates.end(), one.gates.begin() + at));
    }
  }
}

TEMPLATE_TEST_CASE("routing refuses sizes that cannot be", "[routing]", cpu, reference) {
  TestType b;
  const auto scores = random_grid<float>(2, 4, 1);
  std::int32_t chosen[10] = {};
  float x[10] = {};
  for (const index active : {0, 5})
    CHECK_THROWS_WITH(b.route(scores.read(), nullptr, 1.0, active, chosen, x, x),
                      Catch::Contains("route: " + std::to_string(active) + " active of 4 experts"));
  std::int32_t offsets[5], place[4], source[4];
  const std::int32_t wrong[] = {0, 3, 4, 1};
  CHECK_THROWS_WITH(b.group_pairs(wrong, 4, 4, offsets, place, source), Catch::Contains("pair 2 names expert 4 of 4"));
  CHECK_THROWS_WITH(b.group_pairs(wrong, index{1} << 31, 4, offsets, place, source), Catch::Contains("fit the 32-bit places"));
  CHECK_THROWS_WITH(b.router_loss(scores.read(), 1.0, chosen, 1, ragged({3}), {}, x), Catch::Contains("2 rows of scores"));
}

}  // namespace gyre_test
