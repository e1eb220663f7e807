// The optimiser of Huginn's main run: Adam with update clipping and atan2 (recurrent_depth, section 2).
#pragma once

#include <cmath>
#include <string_view>

#include <gyre/train/optimizer.hpp>

GYRE_BEGIN

/// Per tensor, for step t from 1:
///   m = beta1 m + (1 - beta1) g;  v = max(beta2 v + (1 - beta2) g^2, eps^2);  c = max(1, sqrt(mean(g^2 / v)))
///   w *= 1 - lr_t / lr * absolute_decay        matrices and embedding only
///   w -= lr_t / (c (1 - beta1^t)) * atan2(m, sqrt(v / (1 - beta2^t)))
struct huginn_adam {
  static constexpr std::string_view name = "huginn_adam";
  double lr = 4e-5;  // lr_max
  double beta1 = 0.9, beta2 = 0.95;
  double eps = 1e-6;             // the floor of sqrt(v)
  double absolute_decay = 4e-5;  // follows the schedule, but is not multiplied by lr; adamw's `decay` is
  bool running_start = false;    // m and v start as g and g^2 of the first gradient (the Huginn recipe) instead of zero

  static constexpr int moments(role) { return 2; }
  static constexpr index workspace(const tensor_entry&) { return 0; }

  void validate() const {
    detail::check_learning_rate(name, lr);
    detail::check_decay_factor(name, "beta1", beta1);
    detail::check_decay_factor(name, "beta2", beta2);
    detail::check_positive(name, "eps", eps);
    detail::check_decay_factor(name, "absolute_decay", absolute_decay);
  }

  template <class B, class T>
  void update(B& device, const tensor_update<T>& tensor, const update_step& step) const {
    // Moments that are g and g^2 stay so when the first gradient enters: the same as forgetting all that was before it.
    const bool forget = running_start && step.number == 1;
    const double t = static_cast<double>(step.number);
    device.clipped_atan2_update(tensor.weight, tensor.gradient, tensor.moment(0), tensor.moment(1), tensor.size(),
                                clipped_atan2_numbers{.gradient_scale = step.gradient_scale,
                                                      .beta1 = forget ? 0 : beta1,
                                                      .beta2 = forget ? 0 : beta2,
                                                      .v_floor = eps * eps,
                                                      .shrink = decays(tensor.entry.kind) ? step.rate * absolute_decay : 0,
                                                      .rate = step.rate * lr / (1 - std::pow(beta1, t)),
                                                      .v_correction = 1 - std::pow(beta2, t)});
  }
};

GYRE_END
