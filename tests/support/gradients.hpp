// Gradients of whole models against the complex step: Im f(x + ih) / h with h = 1e-50 has no cancellation, so the two agree to
// rounding.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/model/pass.hpp>

namespace gyre_test {

inline constexpr double tiny_step = 1e-50;

/// A model in double and in complex<double> with equal parameters, all of them random: gains and biases too.
template <class Model>
class gradient_check {
 public:
  explicit gradient_check(std::vector<gyre::index> lengths, std::uint64_t seed = 1)
      : exact_({}, gyre::seed{seed}), stepped_({}, gyre::seed{seed}), gradient_(exact_.values().size()) {
    const gyre::random_stream noise(gyre::seed{seed}, gyre::purpose::noise);
    auto values = exact_.values();
    for (const gyre::tensor_entry& entry : gyre::parameter_table<Model>::entries)
      for (gyre::index i = entry.offset; i < entry.offset + entry.shape.size(); ++i)
        values[static_cast<std::size_t>(i)] +=
            (gyre::decays(entry.kind) ? 0.05 : 0.3) * noise.normal({.feature = static_cast<std::uint32_t>(i)});
    exact_.refresh();
    std::copy(values.begin(), values.end(), stepped_.values().begin());
    std::uint64_t key = 3;
    for (gyre::index n : lengths) layout_.add(n, 0, key++);
    for (gyre::index i = 0; i < layout_.rows(); ++i) {
      const auto at = static_cast<std::uint32_t>(i);
      ids_.push_back(static_cast<gyre::token>(noise.bits({.step = 1, .feature = at}) % Model::shape.vocab));
      targets_.push_back(i % 5 == 3 ? -1
                                    : static_cast<gyre::token>(noise.bits({.step = 2, .feature = at}) % Model::shape.vocab));
    }
  }

  const std::vector<double>& backward(gyre::depth_draw draw) {
    std::fill(gradient_.begin(), gradient_.end(), 0.0);
    gyre::pass_memory<gyre::reference> memory{{}};
    gyre::run_pass(exact_, memory, layout_, ids_, targets_, key_, draw, scale_, gradient_.data());
    return gradient_;
  }
  /// Derivative of the loss along `direction` (index, size) pairs.
  double along(const std::vector<std::pair<std::size_t, double>>& direction, int steps) {
    auto values = stepped_.values();
    for (auto [i, size] : direction) values[i] = {values[i].real(), tiny_step * size};
    const auto result = gyre::run_pass(stepped_, memory_, layout_, ids_, targets_, key_, {steps, 0}, scale_, nullptr);
    for (auto [i, size] : direction) values[i] = values[i].real();
    return scale_ * (result.loss_sum + result.auxiliary_loss).imag() / tiny_step;
  }

  /// Every single parameter: per tensor max|g - g_cs| <= 1e-12 max|g_cs|.
  void check_every_parameter(int steps) {
    const auto& g = backward({0, steps});
    const auto names = gyre::parameter_table<Model>::names();
    for (std::size_t n = 0; n < names.size(); ++n) {
      const auto& entry = gyre::parameter_table<Model>::entries[n];
      double worst = 0, largest = 0;
      for (gyre::index i = entry.offset; i < entry.offset + entry.shape.size(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double exact = along({{at, 1.0}}, steps);
        worst = std::max(worst, std::abs(g[at] - exact));
        largest = std::max(largest, std::abs(exact));
      }
      INFO(names[n] << " at r = " << steps << ": worst " << worst << ", largest gradient " << largest);
      if (!gyre::learns(entry.kind)) {
        CHECK((largest == 0 && worst == 0));
        continue;
      }
      CHECK(largest > 0);
      CHECK(worst <= 1e-12 * largest);
    }
  }
  /// Random directions over all parameters at once.
  void check_directions(int steps, int count) {
    const auto& g = backward({0, steps});
    const gyre::random_stream noise(gyre::seed{99}, gyre::purpose::noise);
    for (int d = 0; d < count; ++d) {
      std::vector<std::pair<std::size_t, double>> direction;
      double dot = 0, magnitude = 0;
      for (std::size_t i = 0; i < g.size(); ++i) {
        direction.emplace_back(i,
                               noise.normal({.row = static_cast<std::uint32_t>(d), .feature = static_cast<std::uint32_t>(i)}));
        dot += g[i] * direction.back().second;
        magnitude += std::abs(g[i] * direction.back().second);
      }
      const double exact = along(direction, steps);
      INFO("direction " << d << " at r = " << steps << ": backward " << dot << ", complex step " << exact);
      CHECK(exact != 0);
      CHECK(std::abs(dot - exact) <= 1e-12 * magnitude);
    }
  }

 private:
  gyre::network<Model, gyre::reference, gyre::fp64> exact_;
  gyre::network<Model, gyre::reference, gyre::complex_step> stepped_;
  gyre::pass_memory<gyre::reference> memory_{{}};
  gyre::batch_layout layout_;
  std::vector<gyre::token> ids_, targets_;
  std::vector<double> gradient_;
  gyre::state_key key_{gyre::seed{5}, 11};
  double scale_ = 0.125;
};

}  // namespace gyre_test
