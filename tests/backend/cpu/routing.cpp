// Routing against the reference: the same experts, gates and gradients within the contract's tolerance.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>

#include "support.hpp"
#include "support/compare.hpp"

namespace gyre_test {
namespace {

using gyre::batch_layout, gyre::cpu, gyre::reference, gyre::router_loss_weights;
using exact = long double;
using integers = std::vector<std::int32_t>;

struct sizes {
  index rows, experts, active;
};
// Few and many active, all, one, one of one, rows that end within a vector, rows long enough for a first search, no rows.
constexpr sizes cases[] = {{0, 8, 2},    {1, 1, 1},     {5, 7, 1},     {33, 64, 4},   {9, 64, 64},
                           {3, 257, 20}, {40, 256, 16}, {40, 256, 17}, {2, 4096, 64}, {2, 4096, 4},
                           {3, 1000, 1}, {3, 1000, 8},  {3, 1000, 9},  {7, 100, 99},  {300, 16, 2}};

template <class T>
struct routed {
  integers chosen;
  std::vector<T> logits, gates;
  explicit routed(const sizes& s)
      : chosen(static_cast<std::size_t>(s.rows * s.active), -1), logits(chosen.size()), gates(chosen.size()) {}
};
template <class B, class T>
routed<T> route_with(B b, matrix_view<const T> scores, const T* bias, double scale, index active) {
  routed<T> r({scores.rows, scores.cols, active});
  b.route(scores, bias, scale, active, r.chosen.data(), r.logits.data(), r.gates.data());
  return r;
}
template <class T>
matrix_view<const T> as_matrix(const std::vector<T>& x, index rows) {
  const index cols = rows > 0 ? static_cast<index>(x.size()) / rows : 0;
  return {x.data(), rows, cols};
}
template <class T>
std::vector<exact> widened(const std::vector<T>& x) {
  return std::vector<exact>(x.begin(), x.end());
}

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
  for (const sizes& s : cases)
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

TEMPLATE_TEST_CASE("pairs travel to their experts and back as the reference moves them", "[routing]", float, double) {
  using T = TestType;
  for (const sizes& s : cases)
    for (const index width : {1, 20, 259}) {
      const index pairs = s.rows * s.active;
      CAPTURE(s.rows, s.experts, s.active, width);
      const auto scores = random_grid<T>(s.rows, s.experts, 1);
      const auto r = route_with(cpu(1), scores.read(), static_cast<const T*>(nullptr), 1.0, s.active);
      integers offsets(static_cast<std::size_t>(s.experts + 1)), place(r.chosen.size()), source(r.chosen.size());
      auto offsets_want = offsets, place_want = place, source_want = source;
      cpu b(2);
      b.group_pairs(r.chosen.data(), pairs, s.experts, offsets.data(), place.data(), source.data());
      reference().group_pairs(r.chosen.data(), pairs, s.experts, offsets_want.data(), place_want.data(), source_want.data());
      CHECK((offsets == offsets_want && place == place_want && source == source_want));

      const auto x = random_grid<T>(s.rows, width, 2), y = random_grid<T>(pairs, width, 3);
      grid<T> spread(pairs, width), spread_want(pairs, width);
      b.spread(x.read(), source.data(), s.active, spread.view());
      reference().spread(x.read(), source.data(), s.active, spread_want.view());
      CHECK(bit_differences(spread.view(), spread_want.view()) == "");

      const auto terms = static_cast<exact>(s.active + 1);
      const auto wide_y = y.template as<exact>(), wide_x = x.template as<exact>();
      const auto gates = widened(r.gates), ones = std::vector<exact>(gates.size(), exact(1));
      for (const bool gated : {false, true}) {
        auto sum = x;
        auto sum_want = wide_x, magnitude = x.absolute().template as<exact>();
        const auto absolute = wide_y.absolute();
        b.collect(y.read(), place.data(), gated ? r.gates.data() : nullptr, s.active, sum.view());
        reference().collect(wide_y.read(), place.data(), static_cast<const exact*>(gated ? gates.data() : nullptr), s.active,
                            sum_want.view());
        reference().collect(absolute.read(), place.data(), (gated ? gates : ones).data(), s.active, magnitude.view());
        CHECK(differences(sum.read(), sum_want.view(),
                          [&](index i, index j) { return 2 * terms * epsilon<T> * magnitude[i][j]; }) == "");
        CHECK(sum.margins_intact());
      }

      const auto d_before = random_grid<T>(s.rows, s.active, 4, 1, 0);
      auto d_gates = d_before;
      auto d_gates_want = d_before.template as<exact>(), d_magnitude = d_before.absolute().template as<exact>();
      grid<T> dy(pairs, width);
      grid<exact> dy_want(pairs, width), ignored(pairs, width);
      b.collect_backward(x.read(), y.read(), place.data(), r.gates.data(), s.active, dy.view(), d_gates.data());
      reference().collect_backward(wide_x.read(), wide_y.read(), place.data(), gates.data(), s.active, dy_want.view(),
                                   d_gates_want.data());
      const auto x_magnitude = wide_x.absolute(), y_magnitude = wide_y.absolute();
      reference().collect_backward(x_magnitude.read(), y_magnitude.read(), place.data(), gates.data(), s.active, ignored.view(),
                                   d_magnitude.data());
      CHECK(differences(dy.read(), dy_want.view(), [&](index i, index j) {
              return epsilon<T> * std::fabs(dy_want[i][j]) + std::numeric_limits<T>::min();
            }) == "");
      CHECK(differences(d_gates.read(), d_gates_want.view(), [&](index i, index j) {
              return 2 * static_cast<exact>(width + 1) * epsilon<T> * d_magnitude[i][j];
            }) == "");
      CHECK(dy.margins_intact());
      auto in_place = y;
      auto d_again = d_before;
      b.collect_backward(x.read(), in_place.read(), place.data(), r.gates.data(), s.active, in_place.view(), d_again.data());
      CHECK(bit_differences(in_place.view(), dy.view()) == "");
      CHECK(bit_differences(d_again.view(), d_gates.view()) == "");
    }
}

TEMPLATE_TEST_CASE("the losses of a router agree with the reference", "[routing]", float, double) {
  using T = TestType;
  for (const auto& layout : {ragged({}), ragged({1}), ragged({7, 0, 30, 1}), ragged({300, 2})})
    for (const auto& [experts, active] : {std::pair<index, index>{1, 1}, {5, 1}, {64, 4}, {100, 20}})
      for (const double offset : {0.0, -1000.0, 200.0})
        for (const router_loss_weights weights : {router_loss_weights{1, 0}, {0, 1}, {0.3, 0.01}}) {
          const index rows = layout.rows();
          const double scale = -0.5;
          CAPTURE(rows, experts, active, offset, weights.balance, weights.z);
          auto scores = random_grid<T>(rows, experts, 1, 2);
          for (index i = 0; i < rows; ++i)
            for (index e = 0; e < experts; ++e) scores[i][e] += static_cast<T>(offset / scale);
          const auto chosen = route_with(cpu(1), scores.read(), static_cast<const T*>(nullptr), scale, active).chosen;
          const auto wide = scores.template as<exact>();
          const std::size_t sequences = layout.sequences().size();
          std::vector<T> losses(sequences);
          std::vector<exact> losses_want(sequences);
          cpu b(2);
          b.router_loss(scores.read(), scale, chosen.data(), active, layout, weights, losses.data());
          reference().router_loss(wide.read(), scale, chosen.data(), active, layout, weights, losses_want.data());
          // Of one token: shares are at most E / k, logits at most `most`; sums of E terms, functions 8 eps.
          const exact most = std::fabs(static_cast<exact>(offset)) + 5, sum_error = 2 * static_cast<exact>(experts) + 16;
          const exact share = static_cast<exact>(experts) / static_cast<exact>(active), total = most + 5;
          const exact balance = static_cast<exact>(weights.balance) * share, z = static_cast<exact>(weights.z);
          const exact of_token =
              (balance * 2 * (2 * most + sum_error) + z * 2 * total * (2 * most + sum_error) + z * total * total) * epsilon<T>;
          for (std::size_t n = 0; n < sequences; ++n) {
            const exact tokens = static_cast<exact>(layout.sequences()[n].count);
            CHECK(std::fabs(losses[n] - losses_want[n]) <= tokens * of_token + epsilon<T> * std::fabs(losses_want[n]));
          }
          auto d = random_grid<T>(rows, experts, 5);
          auto d_want = d.template as<exact>();
          b.router_loss_backward(scores.read(), scale, chosen.data(), active, layout, weights, T(0.7), d.view());
          reference().router_loss_backward(wide.read(), scale, chosen.data(), active, layout, weights, exact(T(0.7)),
                                           d_want.view());
          const exact of_gradient = (2 * balance + 2 * z * total) * 2 * (2 * most + sum_error) * epsilon<T> + 8 * epsilon<T>;
          CHECK(differences(d.read(), d_want.view(), [&](index, index) { return of_gradient; }) == "");
          CHECK(d.margins_intact());
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
