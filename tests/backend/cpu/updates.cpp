// Updates on the `cpu` backend: the reference's values, the angle of atan2, and sums that no number of threads changes.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>

namespace {

using count_type = gyre::index;

template <class T>
std::vector<T> random_values(count_type count, unsigned number) {
  std::mt19937 random(number);
  std::normal_distribution<double> normal;
  std::vector<T> x;
  for (count_type i = 0; i < count; ++i)
    x.push_back(static_cast<T>(normal(random) * std::pow(10.0, -static_cast<double>(i % 7))));
  return x;
}
template <class T>
std::vector<T> squares_of(std::vector<T> x) {
  for (T& v : x) v = v * v + T(1e-12);
  return x;
}
template <class T>
void check_close(const std::vector<T>& found, const std::vector<T>& expected, double tolerance) {
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])) /
                                (1 + std::abs(static_cast<double>(expected[i]))));
  CHECK(worst <= tolerance);
}

}  // namespace

TEMPLATE_TEST_CASE("angle is atan2 to 4 units in the last place", "[cpu]", float, double) {
  using simd = gyre::detail::simd<TestType>;
  const double eps = std::numeric_limits<TestType>::epsilon();
  double worst = 0;
  for (int i = 0; i < 40000; ++i) {
    // Ratios from 1e-30 to 1e30, dense around those where the formula changes.
    const double ratio = i < 20000 ? std::pow(10.0, (i - 10000) / 333.4) : 0.35 + (i - 20000) / 20000.0 * 2.2;
    for (const double size : {1e-6, 1.0, 300.0}) {
      const TestType x = static_cast<TestType>(size), y = static_cast<TestType>(ratio * size);
      const double exact = std::atan2(static_cast<double>(y), static_cast<double>(x));
      if (!(exact > std::numeric_limits<TestType>::min())) continue;
      const double found = gyre::detail::angle(simd::broadcast(y), simd::broadcast(x))[0];
      const double mirrored = gyre::detail::angle(simd::broadcast(-y), simd::broadcast(x))[0];
      CHECK(mirrored == -found);
      worst = std::max(worst, std::abs(found - exact) / exact);
    }
  }
  CHECK(worst <= 4 * eps);
  CHECK(gyre::detail::angle(simd::zero(), simd::broadcast(1))[0] == 0);
  constexpr TestType infinity = std::numeric_limits<TestType>::infinity();
  for (const TestType y : {-infinity, TestType(-2), TestType(0), TestType(3), infinity})
    for (const TestType x : {TestType(0.5), infinity})
      CHECK(gyre::detail::angle(simd::broadcast(y), simd::broadcast(x))[0] == Approx(std::atan2(y, x)).margin(0));
  CHECK(std::isnan(
      gyre::detail::angle(simd::broadcast(std::numeric_limits<TestType>::quiet_NaN()), simd::broadcast(TestType(1)))[0]));
}

TEMPLATE_TEST_CASE("updates agree with the reference at every length", "[cpu]", float, double) {
  using T = TestType;
  const double tolerance = 8 * static_cast<double>(std::numeric_limits<T>::epsilon());
  gyre::cpu device(2);
  gyre::reference reference;
  for (const count_type count : {0, 1, 7, 8, 9, 17, 1000, 16384, 16385, 40001}) {
    CAPTURE(count);
    // Of sums of n terms in double, by the contract.
    const double of_sums = 2 * static_cast<double>(count) * std::numeric_limits<double>::epsilon();
    const std::vector<T> w = random_values<T>(count, 1), g = random_values<T>(count, 2), m = random_values<T>(count, 3),
                         v = squares_of(random_values<T>(count, 4));
    double squares = -1, expected_squares = -1;
    device.squared_norm(g.data(), count, &squares);
    reference.squared_norm(g.data(), count, &expected_squares);
    CHECK(squares == Approx(expected_squares).epsilon(of_sums));
    for (const double of : {squares, 0.0}) {
      std::vector<T> found = w, expected = w;
      device.unit(g.data(), &of, found.data(), count);
      reference.unit(g.data(), &of, expected.data(), count);
      CHECK(found == expected);
    }
    for (const double b : {0.0, 0.75}) {
      std::vector<T> found = w, expected = w;
      if (b == 0 && count > 0) found[0] = expected[0] = std::numeric_limits<T>::quiet_NaN();  // assigned, not read
      device.combine(T(1.5), g.data(), T(b), found.data(), count);
      reference.combine(T(1.5), g.data(), T(b), expected.data(), count);
      check_close(found, expected, tolerance);
    }
    {
      const gyre::adamw_numbers n{0.5, 0.9, 0.95, 1e-8, 1e-3, 0.01, 0.6};
      std::vector<T> w1 = w, w2 = w, m1 = m, m2 = m, v1 = v, v2 = v;
      device.adamw_update(w1.data(), g.data(), m1.data(), v1.data(), count, n);
      reference.adamw_update(w2.data(), g.data(), m2.data(), v2.data(), count, n);
      check_close(m1, m2, tolerance);
      check_close(v1, v2, tolerance);
      // The step is rate * m / sqrt(v): large where v is small. m is a sum of two terms that may nearly cancel, and is off by their
      // rounding.
      for (std::size_t i = 0; i < w1.size(); ++i) {
        const auto size = [](T x) { return std::abs(static_cast<double>(x)); };
        const double terms = n.beta1 * size(m[i]) + (1 - n.beta1) * n.gradient_scale * size(g[i]);
        const double step = n.rate * terms / (std::sqrt(size(v2[i]) / n.v_correction) + n.eps);
        CHECK(size(w1[i] - w2[i]) <= tolerance * (size(w[i]) + step));
      }
    }
    {
      const gyre::clipped_atan2_numbers n{0.5, 0.9, 0.95, 1e-6, 1e-3, 0.01, 0.6};
      std::vector<T> m1 = m, m2 = m, v1 = v, v2 = v, w1 = w, w2 = w;
      device.clipped_atan2_update(w1.data(), g.data(), m1.data(), v1.data(), count, n);
      reference.clipped_atan2_update(w2.data(), g.data(), m2.data(), v2.data(), count, n);
      check_close(m1, m2, tolerance);
      check_close(v1, v2, tolerance);
      check_close(w1, w2, tolerance);
    }
  }
}

TEST_CASE("sums and updates have the same bits for 1, 2 and 3 threads", "[cpu][threads]") {
  const count_type count = 100'003;
  const std::vector<float> g = random_values<float>(count, 2), m = random_values<float>(count, 3),
                           v = squares_of(random_values<float>(count, 4));
  const auto run = [&](int threads) {
    gyre::cpu device(threads);
    std::vector<float> w = g, m1 = m, v1 = v;
    double squares = 0;
    device.squared_norm(g.data(), count, &squares);
    device.clipped_atan2_update(w.data(), g.data(), m1.data(), v1.data(), count,
                                gyre::clipped_atan2_numbers{1, 0.9, 0.95, 1e-12, 1e-3, 0.01, 0.6});
    device.adamw_update(w.data(), g.data(), m1.data(), v1.data(), count, gyre::adamw_numbers{1, 0.9, 0.95, 1e-8, 0, 0.1, 1});
    return std::pair(w, squares);
  };
  const auto one = run(1);
  for (const int threads : {2, 3}) {
    const auto several = run(threads);
    CHECK((several.first == one.first));
    CHECK(several.second == one.second);
  }
}
