// AdamW (Loshchilov, Hutter, "Decoupled weight decay regularization", ICLR 2019).
#pragma once

#include <cmath>
#include <string_view>

#include <gyre/train/optimizer.hpp>

GYRE_BEGIN

/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
/// w = (1 - lr_t decay) w - lr_t m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps).
/// Decay acts on matrices and embedding only.
struct adamw {
  static constexpr std::string_view name = "adamw";
  double lr = 4e-4;
  double beta1 = 0.9, beta2 = 0.95;
  double eps = 1e-8;
  double decay = 0.01;  // times the learning rate of the step; huginn_adam's `absolute_decay` is not

  static constexpr int moments(role) { return 2; }
  static constexpr index workspace(const tensor_entry&) { return 0; }

  void validate() const {
    detail::check_learning_rate(name, lr);
    detail::check_decay_factor(name, "beta1", beta1);
    detail::check_decay_factor(name, "beta2", beta2);
    detail::check_positive(name, "eps", eps);
    require(decay >= 0 && std::isfinite(decay), name, ": decay is ", decay, "; it must be finite and not negative");
  }

  template <class B, class T>
  void update(B& device, const tensor_update<T>& tensor, const update_step& step) const {
    const double t = static_cast<double>(step.number), rate = step.rate * lr;
    device.adamw_update(tensor.weight, tensor.gradient, tensor.moment(0), tensor.moment(1), tensor.size(),
                        adamw_numbers{.gradient_scale = step.gradient_scale,
                                      .beta1 = beta1,
                                      .beta2 = beta2,
                                      .eps = eps,
                                      .shrink = decays(tensor.entry.kind) ? rate * decay : 0,
                                      .rate = rate / (1 - std::pow(beta1, t)),
                                      .v_correction = 1 - std::pow(beta2, t)});
  }
};

GYRE_END
