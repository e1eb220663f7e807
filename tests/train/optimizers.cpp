// adamw and huginn_adam against straight-line formulas written independently, tensor by tensor and scalar by scalar.
// [own_unit]
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/train/adamw.hpp>
#include <gyre/train/huginn_adam.hpp>

#include "train/support.hpp"

namespace {

using gyre_test::Untied;
using table = gyre::parameter_table<Untied>;

// One optimiser run beside the library's: all in double, all written out.
struct written_out {
  std::vector<double> w, m, v;
  explicit written_out(std::vector<double> start) : w(start), m(start.size(), 0.0), v(start.size(), 0.0) {}

  void adamw(const std::vector<double>& gradient, int t, double lr, double wd, double b1, double b2, double eps) {
    for (const gyre::tensor_entry& e : table::entries)
      for (auto i = static_cast<std::size_t>(e.offset); i < static_cast<std::size_t>(e.offset + e.shape.size()); ++i) {
        if (e.kind != gyre::role::gain && e.kind != gyre::role::bias) w[i] = w[i] - lr * wd * w[i];
        m[i] = b1 * m[i] + (1 - b1) * gradient[i];
        v[i] = b2 * v[i] + (1 - b2) * gradient[i] * gradient[i];
        const double m_hat = m[i] / (1 - std::pow(b1, t)), v_hat = v[i] / (1 - std::pow(b2, t));
        w[i] = w[i] - lr * m_hat / (std::sqrt(v_hat) + eps);
      }
  }
  void huginn(const std::vector<double>& g, int t, double lr_t, double lr_max, bool running, double& largest_clip) {
    for (const gyre::tensor_entry& e : table::entries) {
      const auto begin = static_cast<std::size_t>(e.offset), end = begin + static_cast<std::size_t>(e.shape.size());
      double mean = 0;
      for (std::size_t i = begin; i < end; ++i) {
        if (running && t == 1) m[i] = g[i], v[i] = g[i] * g[i];
        m[i] = 0.9 * m[i] + (1 - 0.9) * g[i];
        v[i] = std::max(0.95 * v[i] + (1 - 0.95) * g[i] * g[i], 1e-6 * 1e-6);
        mean += g[i] * g[i] / v[i] / static_cast<double>(end - begin);
      }
      const double c = std::max(1.0, std::sqrt(mean));
      largest_clip = std::max(largest_clip, c);
      for (std::size_t i = begin; i < end; ++i) {
        if (e.kind != gyre::role::gain && e.kind != gyre::role::bias) w[i] *= 1 - (lr_t / lr_max) * 4e-5;
        w[i] -= lr_t / (c * (1 - std::pow(0.9, t))) * std::atan2(m[i], std::sqrt(v[i] / (1 - std::pow(0.95, t))));
      }
    }
  }
};

// Gradients of very different sizes, some exactly zero, some below the floor of sqrt(v).
std::vector<double> gradient_of(int step) {
  std::mt19937 random(static_cast<unsigned>(100 + step));
  std::normal_distribution<double> normal;
  std::vector<double> g(static_cast<std::size_t>(Untied::parameter_count));
  for (std::size_t i = 0; i < g.size(); ++i)
    g[i] = i % 13 == 0 ? 0.0 : normal(random) * std::pow(10.0, -static_cast<double>(i % 9));
  return g;
}

double largest_difference(const std::vector<double>& expected, std::span<const double> found) {
  double most = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) most = std::max(most, std::abs(expected[i] - found[i]));
  return most;
}

// Runs the rule for some steps on both backends beside `formula(reference, gradient, t, rate)`.
template <class B, class Rule, class Formula>
void check_rule(B device, const Rule& rule, double tolerance, Formula&& formula) {
  gyre::network<Untied, B, gyre::fp64> net(device, gyre::seed{3});
  gyre_test::scatter(net);
  gyre::optimizer_state<Rule, decltype(net)> state(device);
  written_out expected(gyre_test::copy_of(net));
  for (int t = 1; t <= 5; ++t) {
    const double rate = t / 4.0, scale = t == 2 ? 0.25 : 1;
    const std::vector<double> g = gradient_of(t);
    state.apply(rule, net, g.data(), rate, scale);
    std::vector<double> scaled = g;
    for (double& x : scaled) x *= scale;
    formula(expected, scaled, t, rate);
    CAPTURE(t);
    CHECK(largest_difference(expected.w, net.values()) <= tolerance);
  }
  CHECK(state.updates() == 5);
}

}  // namespace

TEMPLATE_TEST_CASE("adamw is its formula, with decay on matrices and embedding only", "[optimizer]", gyre::reference,
                   gyre::cpu) {
  check_rule(TestType{}, gyre::adamw{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.97, .eps = 1e-7, .decay = 0.3}, 1e-14,
             [](written_out& expected, const std::vector<double>& g, int t, double rate) {
               expected.adamw(g, t, 0.01 * rate, 0.3, 0.8, 0.97, 1e-7);
             });
}

TEMPLATE_TEST_CASE("huginn_adam is its formula, from zero and from a running start", "[optimizer]", gyre::reference,
                   gyre::cpu) {
  const bool running = GENERATE(false, true);
  double largest_clip = 0;
  check_rule(TestType{}, gyre::huginn_adam{.lr = 0.02, .running_start = running}, 1e-14,
             [&](written_out& expected, const std::vector<double>& g, int t, double rate) {
               expected.huginn(g, t, 0.02 * rate, 0.02, running, largest_clip);
             });
  CHECK(largest_clip > 1);  // or the update clip was never tried
}

TEST_CASE("the two decays: adamw's is multiplied by the learning rate, huginn_adam's only follows the schedule",
          "[optimizer]") {
  // With no gradient, decay is all that happens.
  const std::vector<double> nothing(static_cast<std::size_t>(Untied::parameter_count), 0.0);
  const auto check = [&](const auto& rule, double rate, double kept) {
    gyre_test::reference_network<Untied> net(gyre::reference{}, gyre::seed{3});
    gyre_test::scatter(net);
    const std::vector<double> before = gyre_test::copy_of(net);
    gyre::optimizer_state<std::decay_t<decltype(rule)>, decltype(net)> state(net.device());
    state.apply(rule, net, nothing.data(), rate, 1);
    const auto names = table::names();
    for (std::size_t n = 0; n < names.size(); ++n) {
      CAPTURE(names[n]);
      const bool decays = names[n].find("norm") == std::string::npos && names[n].find("ln_f") == std::string::npos &&
                          names[n].find("bias") == std::string::npos;
      for (gyre::index i = 0; i < table::entries[n].shape.size(); ++i) {
        const auto at = static_cast<std::size_t>(table::entries[n].offset + i);
        if (decays)
          CHECK(std::abs(net.values()[at] - before[at] * kept) <= 1e-15);
        else
          CHECK(net.values()[at] == before[at]);
      }
    }
  };
  check(gyre::adamw{.lr = 0.01, .decay = 0.3}, 0.5, 1 - 0.01 * 0.5 * 0.3);
  check(gyre::huginn_adam{.lr = 0.01}, 0.5, 1 - 0.5 * 4e-5);
}

TEST_CASE("updates of float are those of double, rounded", "[optimizer]") {
  gyre::network<Untied, gyre::cpu, gyre::fp32> net(gyre::cpu(2), gyre::seed{3});
  gyre_test::scatter(net);
  const auto start = gyre_test::copy_of(net);
  gyre::optimizer_state<gyre::huginn_adam, decltype(net)> state(net.device());
  written_out expected(std::vector<double>(start.begin(), start.end()));
  double clip = 0;
  for (int t = 1; t <= 3; ++t) {
    const std::vector<double> g = gradient_of(t);
    const std::vector<float> rounded(g.begin(), g.end());
    state.apply(gyre::huginn_adam{.lr = 0.02}, net, rounded.data(), 1, 1);
    expected.huginn(g, t, 0.02, 0.02, false, clip);
  }
  for (std::size_t i = 0; i < expected.w.size(); ++i)
    CHECK(std::abs(expected.w[i] - static_cast<double>(net.values()[i])) <= 4 * 6e-8 * (1 + std::abs(expected.w[i])));
}

TEST_CASE("optimisers refuse numbers that make no rule", "[optimizer]") {
  CHECK_THROWS_WITH((gyre::adamw{.lr = -1}.validate()), "adamw: lr is -1; it must be finite and not negative");
  CHECK_THROWS_WITH((gyre::adamw{.beta2 = 1}.validate()), "adamw: beta2 is 1; it lies in [0, 1)");
  CHECK_THROWS_WITH((gyre::adamw{.eps = 0}.validate()), "adamw: eps is 0; it must be positive and finite");
  CHECK_THROWS_WITH((gyre::huginn_adam{.absolute_decay = 2}.validate()), "huginn_adam: absolute_decay is 2; it lies in [0, 1)");
}
