// muon: its formula written out, the parts of fused matrices, and what orthogonalising is for.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/train/muon.hpp>

#include "train/support.hpp"

namespace {

using gyre_test::Untied;
using table = gyre::parameter_table<Untied>;

struct matrix {
  std::size_t rows, cols;
  std::vector<double> data;
  matrix(std::size_t r, std::size_t c) : rows(r), cols(c), data(r * c, 0.0) {}
  double& operator()(std::size_t i, std::size_t j) { return data[i * cols + j]; }
  double operator()(std::size_t i, std::size_t j) const { return data[i * cols + j]; }
};
matrix times(const matrix& a, const matrix& b) {
  matrix c(a.rows, b.cols);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < b.cols; ++j)
      for (std::size_t k = 0; k < a.cols; ++k) c(i, j) += a(i, k) * b(k, j);
  return c;
}
matrix transposed(const matrix& a) {
  matrix t(a.cols, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < a.cols; ++j) t(j, i) = a(i, j);
  return t;
}

// Always by A = X X^T, whatever the shape.
matrix newton_schulz(matrix x) {
  double squares = 0;
  for (const double v : x.data) squares += v * v;
  for (double& v : x.data) v /= std::sqrt(squares);
  for (int step = 0; step < 5; ++step) {
    const matrix a = times(x, transposed(x)), a2 = times(a, a);
    matrix b(a.rows, a.cols);
    for (std::size_t i = 0; i < b.data.size(); ++i) b.data[i] = -4.7750 * a.data[i] + 2.0315 * a2.data[i];
    const matrix bx = times(b, x);
    for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] = 3.4445 * x.data[i] + bx.data[i];
  }
  return x;
}

// Singular values by one-sided Jacobi rotations of the columns (Hestenes 1958).
std::vector<double> singular_values(matrix x) {
  if (x.cols > x.rows) x = transposed(x);
  for (int sweep = 0; sweep < 40; ++sweep)
    for (std::size_t p = 0; p + 1 < x.cols; ++p)
      for (std::size_t q = p + 1; q < x.cols; ++q) {
        double a = 0, b = 0, c = 0;
        for (std::size_t i = 0; i < x.rows; ++i) a += x(i, p) * x(i, p), b += x(i, q) * x(i, q), c += x(i, p) * x(i, q);
        if (std::abs(c) < 1e-300) continue;
        const double zeta = (b - a) / (2 * c);
        const double t = (zeta >= 0 ? 1 : -1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double cosine = 1 / std::sqrt(1 + t * t), sine = cosine * t;
        for (std::size_t i = 0; i < x.rows; ++i) {
          const double first = x(i, p), second = x(i, q);
          x(i, p) = cosine * first - sine * second, x(i, q) = sine * first + cosine * second;
        }
      }
  std::vector<double> values;
  for (std::size_t j = 0; j < x.cols; ++j) {
    double squares = 0;
    for (std::size_t i = 0; i < x.rows; ++i) squares += x(i, j) * x(i, j);
    values.push_back(std::sqrt(squares));
  }
  return values;
}

// The matrices that each tensor is made of, by what the specification says of each name; none: left to adamw.
std::vector<std::pair<std::size_t, std::size_t>> parts_of(const std::string& name) {
  const auto ends = [&](const std::string& with) {
    return name.size() >= with.size() && name.compare(name.size() - with.size(), with.size(), with) == 0;
  };
  if (ends("Wqkv.weight")) return {{8, 8}, {8, 8}, {8, 8}};
  if (ends("fc.weight")) return {{6, 8}, {6, 8}};
  if (ends("attn.proj.weight")) return {{8, 8}};
  if (ends("mlp.proj.weight")) return {{8, 6}};
  if (ends("adapter.weight")) return {{8, 16}};
  return {};
}

std::vector<double> gradient_of(int step) {
  std::mt19937 random(static_cast<unsigned>(step));
  std::normal_distribution<double> normal;
  std::vector<double> g(static_cast<std::size_t>(Untied::parameter_count));
  for (double& x : g) x = normal(random);
  return g;
}

matrix part(const std::vector<double>& flat, std::size_t at, std::pair<std::size_t, std::size_t> shape) {
  matrix m(shape.first, shape.second);
  std::copy_n(flat.begin() + static_cast<std::ptrdiff_t>(at), m.data.size(), m.data.begin());
  return m;
}

}  // namespace

TEMPLATE_TEST_CASE("muon is its formula, part by part; everything but matrices is adamw", "[optimizer]", gyre::reference,
                   gyre::cpu) {
  const gyre::muon rule{.lr = 0.02, .decay = 0.5, .others = {.lr = 0.003, .decay = 0.1}};
  gyre::network<Untied, TestType, gyre::fp64> net(TestType{}, gyre::seed{3});
  gyre_test::scatter(net);
  gyre::optimizer_state<gyre::muon, decltype(net)> state(net.device());
  // adamw beside it, on the same gradients, shows what the other tensors should do.
  gyre::network<Untied, TestType, gyre::fp64> other(TestType{}, gyre::seed{3});
  gyre_test::scatter(other);
  gyre::optimizer_state<gyre::adamw, decltype(other)> other_state(other.device());

  const auto names = table::names();
  std::vector<double> w = gyre_test::copy_of(net), m(w.size(), 0.0);
  for (int t = 1; t <= 3; ++t) {
    const double rate = 1.0 / t, scale = 0.5;
    const std::vector<double> g = gradient_of(t);
    state.apply(rule, net, g.data(), rate, scale);
    other_state.apply(rule.others, other, g.data(), rate, scale);
    for (std::size_t n = 0; n < names.size(); ++n) {
      CAPTURE(t, names[n]);
      auto at = static_cast<std::size_t>(table::entries[n].offset);
      const auto end = at + static_cast<std::size_t>(table::entries[n].shape.size());
      const auto parts = parts_of(names[n]);
      for (const auto& shape : parts) {
        matrix u(shape.first, shape.second);
        for (std::size_t i = 0; i < u.data.size(); ++i) {
          m[at + i] = 0.95 * m[at + i] + scale * g[at + i];
          u.data[i] = scale * g[at + i] + 0.95 * m[at + i];
        }
        const matrix x = newton_schulz(u);
        const double lr = 0.02 * rate, factor = 0.2 * std::sqrt(static_cast<double>(std::max(shape.first, shape.second)));
        for (std::size_t i = 0; i < u.data.size(); ++i) {
          w[at + i] = w[at + i] - lr * 0.5 * w[at + i] - lr * factor * x.data[i];
          CHECK(std::abs(net.values()[at + i] - w[at + i]) <= 1e-14);
        }
        at += u.data.size();
      }
      if (parts.empty())
        for (; at < end; ++at) CHECK(net.values()[at] == other.values()[at]);
      CHECK(at == end);
    }
  }
}

TEST_CASE("muon's update of every part has singular values near 1", "[optimizer]") {
  gyre_test::reference_network<Untied> net(gyre::reference{}, gyre::seed{3});
  const std::vector<double> before = gyre_test::copy_of(net), g = gradient_of(11);
  gyre::optimizer_state<gyre::muon, decltype(net)> state(net.device());
  state.apply(gyre::muon{.lr = 1}, net, g.data(), 1, 1);
  std::vector<double> change = before;
  for (std::size_t i = 0; i < change.size(); ++i) change[i] = before[i] - net.values()[i];
  const auto names = table::names();
  int checked = 0;
  for (std::size_t n = 0; n < names.size(); ++n) {
    auto at = static_cast<std::size_t>(table::entries[n].offset);
    for (const auto& shape : parts_of(names[n])) {
      CAPTURE(names[n], at);
      const double factor = 0.2 * std::sqrt(static_cast<double>(std::max(shape.first, shape.second)));
      const std::vector<double> was = singular_values(part(g, at, shape)), is = singular_values(part(change, at, shape));
      double squares = 0;
      for (const double s : was) squares += s * s;
      const double smallest = *std::min_element(was.begin(), was.end()) / std::sqrt(squares);
      // Five steps of the polynomial, tried on a fine grid: [0.01, 1] goes to [0.6818, 1.1344], and below 0.01 values grow at
      // least 69 times and stay below 1.2024.
      for (const double s : is) {
        CHECK(s / factor <= 1.2024);
        CHECK(s / factor >= (smallest >= 0.01 ? 0.6818 : 69 * smallest));
      }
      at += shape.first * shape.second;
      ++checked;
    }
  }
  CHECK(checked == 8);
}

TEST_CASE("a matrix without gradient has no direction and stays", "[optimizer]") {
  gyre_test::reference_network<Untied> net(gyre::reference{}, gyre::seed{3});
  const std::vector<double> before = gyre_test::copy_of(net), nothing(before.size(), 0.0);
  gyre::optimizer_state<gyre::muon, decltype(net)> state(net.device());
  state.apply(gyre::muon{.others = {.decay = 0}}, net, nothing.data(), 1, 1);
  CHECK(gyre_test::copy_of(net) == before);
}

TEMPLATE_TEST_CASE("a momentum too small for the inverse of its norm has the direction of a large one", "[optimizer]",
                   gyre::reference, gyre::cpu) {
  // 2^-136 is below the normal floats, and its inverse above the largest. There the gradients are exact, multiples of 2^-144, and
  // what the rule adds to them is rounded to 2^-149: errors of 2^-14, which five steps of the polynomial make up to 3.4445^5 = 485
  // times larger, as they do with singular values near 0.
  const auto change_by = [](float size) {
    gyre::network<Untied, TestType, gyre::fp32> net(TestType{}, gyre::seed{3});
    const std::vector<float> before = gyre_test::copy_of(net);
    std::vector<float> g;
    for (const double x : gradient_of(11)) g.push_back(static_cast<float>(std::round(x * 256)) / 256 * size);
    gyre::optimizer_state<gyre::muon, decltype(net)> state(net.device());
    state.apply(gyre::muon{.lr = 1}, net, g.data(), 1, 1);
    std::vector<float> change;
    for (std::size_t i = 0; i < before.size(); ++i) change.push_back(net.values()[i] - before[i]);
    return change;
  };
  const std::vector<float> large = change_by(1), least = change_by(0x1p-136f);
  const auto names = table::names();
  for (std::size_t n = 0; n < names.size(); ++n) {
    auto at = static_cast<std::size_t>(table::entries[n].offset);
    for (const auto& shape : parts_of(names[n])) {
      const float factor = 0.2f * std::sqrt(static_cast<float>(std::max(shape.first, shape.second)));
      for (std::size_t i = 0; i < shape.first * shape.second; ++i, ++at) {
        CAPTURE(names[n], at, large[at]);
        CHECK(std::abs(least[at] - large[at]) <= 485 * 0x1p-14f * factor);
      }
    }
  }
}

TEST_CASE("muon keeps one moment for matrices, two for the rest", "[optimizer]") {
  gyre::index expected = 0;
  for (const gyre::tensor_entry& e : table::entries) expected += (gyre::is_matrix(e.kind) ? 1 : 2) * e.shape.size();
  CHECK(gyre::optimizer_state<gyre::muon, gyre_test::reference_network<Untied>>::offsets.back() == expected);
  CHECK_THROWS_WITH((gyre::muon{.momentum = 1}.validate()), "muon: momentum is 1; it lies in [0, 1)");
  CHECK_THROWS_WITH((gyre::muon{.others = {.lr = -1}}.validate()), "adamw: lr is -1; it must be finite and not negative");
}
