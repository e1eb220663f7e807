// What routing promises, on the reference: gates, gradients by the complex step, pairs. [own_unit]
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include <gyre/backend/reference.hpp>

#include "backend/cpu/support.hpp"
#include "support/compare.hpp"

namespace gyre_test {
namespace {

using gyre::batch_layout, gyre::reference, gyre::router_loss_weights;
using complex = std::complex<double>;
using integers = std::vector<std::int32_t>;
constexpr double step = 1e-50;

template <class S>
struct routed {
  integers chosen;
  std::vector<S> logits, gates;
};
template <class S>
routed<S> route(matrix_view<const S> scores, const S* bias, double scale, index active) {
  const auto pairs = static_cast<std::size_t>(scores.rows * active);
  routed<S> r{integers(pairs), std::vector<S>(pairs), std::vector<S>(pairs)};
  reference().route(scores, bias, scale, active, r.chosen.data(), r.logits.data(), r.gates.data());
  return r;
}

/// Compares `gradient` with Im f / step for every element of x stepped in turn: max|g - g_cs| <= 1e-12 max|g_cs|.
template <class F>
void check_gradient(std::vector<complex> x, const double* gradient, F f) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] += complex(0, step);
    const double exact = f(x).imag() / step;
    x[i] = x[i].real();
    worst = std::max(worst, std::fabs(gradient[i] - exact));
    largest = std::max(largest, std::fabs(exact));
  }
  CAPTURE(worst, largest);
  CHECK(worst <= 1e-12 * largest);
}
template <class T>
std::vector<complex> stepped(const grid<T>& x) {
  std::vector<complex> r;
  for (index i = 0; i < x.read().rows; ++i) r.insert(r.end(), x[i], x[i] + x.read().cols);
  return r;
}
template <class S>
matrix_view<const S> matrix(const std::vector<S>& x, index rows, index cols) {
  return {x.data(), rows, cols};
}
complex dot(const std::vector<complex>& x, const grid<double>& w) {
  complex sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * w.data()[i];
  return sum;
}

struct sizes {
  index rows, experts, active;
};
constexpr sizes cases[] = {{4, 1, 1}, {4, 5, 1}, {3, 6, 3}, {3, 6, 6}, {5, 20, 4}};

}  // namespace

TEST_CASE("gates are quotients of the kept sigmoids, and sum to 1", "[routing]") {
  const auto scores = random_grid<double>(50, 12, 1, 3, 0);
  for (const index active : {2, 5, 12}) {
    const auto r = route<double>(scores.read(), nullptr, 0.7, active);
    for (index i = 0; i < 50; ++i) {
      double gates = 0, sigmoids = 0;
      for (index p = i * active; p < (i + 1) * active; ++p) {
        const auto at = static_cast<std::size_t>(p);
        CHECK(r.logits[at] == 0.7 * scores[i][r.chosen[at]]);
        gates += r.gates[at];
        sigmoids += 1 / (1 + std::exp(-r.logits[at]));
      }
      CHECK(gates == Approx(1).epsilon(1e-15));
      for (index p = i * active; p < (i + 1) * active; ++p) {
        const auto at = static_cast<std::size_t>(p);
        CHECK(r.gates[at] == Approx(1 / (1 + std::exp(-r.logits[at])) / sigmoids).epsilon(1e-14));
      }
    }
  }
  // One of several keeps its sigmoid, which has a gradient; one of one is 1.
  const auto one = route<double>(scores.read(), nullptr, 0.7, 1);
  for (std::size_t i = 0; i < 50; ++i) CHECK(one.gates[i] == Approx(1 / (1 + std::exp(-one.logits[i]))).epsilon(1e-15));
  for (const double g : route<double>(scores.read().columns(0, 1), nullptr, 0.7, 1).gates) CHECK(g == 1);
}

TEMPLATE_TEST_CASE("gates are finite and sum to 1 where every kept sigmoid underflows", "[routing]", float, double) {
  using T = TestType;
  auto scores = random_grid<T>(20, 12, 1, 3, 0);
  for (T* x = scores.data(); x < scores.data() + 240; ++x) *x -= T(1200);
  const auto r = route<T>(scores.read(), nullptr, 1, 4);
  CHECK(*std::max_element(r.logits.begin(), r.logits.end()) < -1000);
  for (std::size_t i = 0; i < 20; ++i) {
    T sum = 0;
    for (std::size_t p = 4 * i; p < 4 * i + 4; ++p) {
      CHECK(std::isfinite(r.gates[p]));
      sum += r.gates[p];
    }
    CHECK(std::fabs(sum - 1) <= 16 * std::numeric_limits<T>::epsilon());
  }
}

TEST_CASE("the bias chooses and is in no gate", "[routing]") {
  const auto scores = random_grid<double>(40, 16, 1, 1, 0), noise = random_grid<double>(1, 16, 2, 2, 0);
  const auto plain = route<double>(scores.read(), nullptr, 1, 4), biased = route<double>(scores.read(), noise.data(), 1, 4);
  CHECK(plain.chosen != biased.chosen);
  // Of every row: the gates of the same experts, chosen by a bias that is nothing but a choice.
  for (index i = 0; i < 40; ++i) {
    grid<double> force(1, 16, 0);
    for (index e = 0; e < 16; ++e) force[0][e] = -1e6;
    for (index p = 4 * i; p < 4 * i + 4; ++p) force[0][biased.chosen[static_cast<std::size_t>(p)]] = 1e6;
    const auto forced = route<double>(scores.read().slice(i, 1), force.data(), 1, 4);
    CHECK(std::equal(forced.gates.begin(), forced.gates.end(), biased.gates.begin() + 4 * i));
    CHECK(std::equal(forced.logits.begin(), forced.logits.end(), biased.logits.begin() + 4 * i));
  }
}

TEST_CASE("a row routed alone has the bits it has in a batch", "[routing]") {
  const auto scores = random_grid<float>(30, 16, 1), bias = random_grid<float>(1, 16, 2);
  const auto all = route<float>(scores.read(), bias.data(), 0.3, 3);
  for (index i = 0; i < 30; ++i) {
    const auto alone = route<float>(scores.read().slice(i, 1), bias.data(), 0.3, 3);
    CHECK(std::equal(alone.chosen.begin(), alone.chosen.end(), all.chosen.begin() + 3 * i));
    CHECK(std::equal(alone.gates.begin(), alone.gates.end(), all.gates.begin() + 3 * i));
    CHECK(std::equal(alone.logits.begin(), alone.logits.end(), all.logits.begin() + 3 * i));
  }
}

TEST_CASE("the gradient of route is that of the complex step", "[routing]") {
  for (const sizes& s : cases)
    for (const double offset : {0.0, -1200.0, 40.0}) {
      CAPTURE(s.experts, s.active, offset);
      constexpr double scale = 0.8;
      auto scores = random_grid<double>(s.rows, s.experts, 1, 2, 0);
      for (index i = 0; i < s.rows * s.experts; ++i) scores.data()[i] += offset / scale;
      const auto bias = random_grid<double>(1, s.experts, 2, 1, 0), w = random_grid<double>(s.rows, s.active, 3, 1, 0);
      const auto r = route<double>(scores.read(), bias.data(), scale, s.active);
      grid<double> d(s.rows, s.experts, 0);
      reference().route_backward(r.logits.data(), r.gates.data(), r.chosen.data(), static_cast<const double*>(w.data()), scale,
                                 s.active, d.view());
      const auto complex_bias = stepped(bias);
      check_gradient(stepped(scores), d.data(), [&](const std::vector<complex>& x) {
        const auto z = route<complex>(matrix(x, s.rows, s.experts), complex_bias.data(), scale, s.active);
        CHECK(z.chosen == r.chosen);
        return dot(z.gates, w);
      });
    }
}

TEST_CASE("the gradients of collect and spread are those of the complex step", "[routing]") {
  for (const sizes& s : cases) {
    CAPTURE(s.experts, s.active);
    constexpr index width = 3;
    const index pairs = s.rows * s.active;
    const auto r = route<double>(random_grid<double>(s.rows, s.experts, 1, 1, 0).read(), nullptr, 1, s.active);
    integers offsets(static_cast<std::size_t>(s.experts + 1)), place(r.chosen.size()), source(r.chosen.size());
    reference().group_pairs(r.chosen.data(), pairs, s.experts, offsets.data(), place.data(), source.data());
    const auto y = random_grid<double>(pairs, width, 2, 1, 0), w = random_grid<double>(s.rows, width, 3, 1, 0),
               gates = random_grid<double>(s.rows, s.active, 4, 1, 0);
    grid<double> dy(pairs, width, 0);
    std::vector<double> d_gates(r.chosen.size(), 0.25);
    reference().collect_backward(w.read(), y.read(), place.data(), static_cast<const double*>(gates.data()), s.active,
                                 dy.view(), d_gates.data());
    for (double& g : d_gates) g -= 0.25;  // it accumulates
    const auto loss = [&](const std::vector<complex>& rows, const std::vector<complex>& g) {
      std::vector<complex> x(static_cast<std::size_t>(s.rows * width), 0.5);
      reference().collect(matrix(rows, pairs, width), place.data(), g.data(), s.active,
                          matrix_view<complex>(x.data(), s.rows, width));
      return dot(x, w);
    };
    check_gradient(stepped(y), dy.data(), [&](const std::vector<complex>& v) { return loss(v, stepped(gates)); });
    check_gradient(stepped(gates), d_gates.data(), [&](const std::vector<complex>& v) { return loss(stepped(y), v); });

    const auto x = random_grid<double>(s.rows, width, 5, 1, 0), of_pairs = random_grid<double>(pairs, width, 6, 1, 0);
    grid<double> dx(s.rows, width, 0);
    reference().fill(dx.view(), 0.0);
    reference().collect(of_pairs.read(), place.data(), static_cast<const double*>(nullptr), s.active, dx.view());
    check_gradient(stepped(x), dx.data(), [&](const std::vector<complex>& v) {
      std::vector<complex> spread(static_cast<std::size_t>(pairs * width));
      reference().spread(matrix(v, s.rows, width), source.data(), s.active, matrix_view<complex>(spread.data(), pairs, width));
      return dot(spread, of_pairs);
    });
  }
}

TEST_CASE("a router's losses are what the formulas say", "[routing]") {
  // Two sequences, the second empty, of 2 experts with 1 active: x = (ln 3, 0), (0, 0), so sigmoids are 3/4 and 1/2.
  const double scores[] = {std::log(3.0), 0, 0, 0};
  const std::int32_t chosen[] = {0, 0};
  const batch_layout layout = ragged({2, 0});
  double losses[2] = {-1, -1};
  const matrix_view<const double> x(scores, 2, 2);
  reference().router_loss(x, 1.0, chosen, 1, layout, {1, 0}, losses);
  // f = (2 / 2 * 2, 0), P_0 = (3/5 + 1/2) / 2; times 2 tokens.
  CHECK(losses[0] == Approx(2 * 2 * 0.55).epsilon(1e-15));
  CHECK(losses[1] == 0);
  reference().router_loss(x, 1.0, chosen, 1, layout, {0, 1}, losses);
  CHECK(losses[0] == Approx(std::pow(std::log(4.0), 2) + std::pow(std::log(2.0), 2)).epsilon(1e-15));
  reference().router_loss(x, 1.0, chosen, 1, layout, {0.5, 0.25}, losses);
  CHECK(losses[0] == Approx(1.1 + 0.25 * (std::pow(std::log(4.0), 2) + std::pow(std::log(2.0), 2))).epsilon(1e-15));
  // Equal use and equal sigmoids give balance * tokens, the least there is.
  const std::int32_t even[] = {0, 1};
  const double equal[] = {-2000, -2000, 5, 5};
  reference().router_loss(matrix_view<const double>(equal, 2, 2), 1.0, even, 1, layout, {1, 0}, losses);
  CHECK(losses[0] == Approx(2).epsilon(1e-15));
}

TEST_CASE("the gradient of a router's losses is that of the complex step", "[routing]") {
  for (const sizes& s : cases)
    for (const double offset : {0.0, -1200.0, 40.0})
      for (const router_loss_weights weights : {router_loss_weights{1, 0}, {0, 1}, {0.3, 0.01}}) {
        if (s.experts == s.active && weights.z == 0) continue;  // all chosen: f is 1, and the loss the number of tokens
        CAPTURE(s.experts, s.active, offset, weights.balance, weights.z);
        constexpr double scale = 0.8, factor = 0.3;
        auto scores = random_grid<double>(s.rows, s.experts, 1, 2, 0);
        for (index i = 0; i < s.rows * s.experts; ++i) scores.data()[i] += offset / scale;
        const batch_layout layout = ragged({1, s.rows - 1});
        const auto chosen = route<double>(scores.read(), nullptr, scale, s.active).chosen;
        grid<double> d(s.rows, s.experts, 0);
        reference().fill(d.view(), 0.0);
        reference().router_loss_backward(scores.read(), scale, chosen.data(), s.active, layout, weights, factor, d.view());
        check_gradient(stepped(scores), d.data(), [&](const std::vector<complex>& x) {
          complex losses[2];
          reference().router_loss(matrix(x, s.rows, s.experts), scale, chosen.data(), s.active, layout, weights, losses);
          return factor * (losses[0] + losses[1]);
        });
      }
}

TEST_CASE("group_pairs is a stable permutation", "[routing]") {
  for (const sizes& s : {sizes{0, 3, 1}, sizes{1, 1, 1}, sizes{100, 16, 3}, sizes{5, 1000, 2}}) {
    const index pairs = s.rows * s.active;
    const auto r = route<double>(random_grid<double>(s.rows, s.experts, 1, 1, 0).read(), nullptr, 1, s.active);
    integers offsets(static_cast<std::size_t>(s.experts + 1)), place(r.chosen.size()), source(r.chosen.size());
    reference().group_pairs(r.chosen.data(), pairs, s.experts, offsets.data(), place.data(), source.data());
    CHECK((offsets.front() == 0 && offsets.back() == pairs));
    for (index p = 0; p < pairs; ++p) CHECK(source[static_cast<std::size_t>(place[static_cast<std::size_t>(p)])] == p);
    for (index e = 0; e < s.experts; ++e) {
      const auto begin = offsets[static_cast<std::size_t>(e)], end = offsets[static_cast<std::size_t>(e + 1)];
      CHECK(end - begin == std::count(r.chosen.begin(), r.chosen.end(), e));
      for (auto row = begin; row < end; ++row) {
        CHECK(r.chosen[static_cast<std::size_t>(source[static_cast<std::size_t>(row)])] == e);
        if (row > begin) CHECK(source[static_cast<std::size_t>(row)] > source[static_cast<std::size_t>(row - 1)]);
      }
    }
  }
}

}  // namespace gyre_test
