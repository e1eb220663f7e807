// How many recurrence steps an optimiser step runs, and how many of them backpropagation sees (recurrent_depth, section 2).
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>

#include <gyre/core/error.hpp>
#include <gyre/core/random_sequence.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// The steps of one recurrence: first those without gradient, then those that backpropagation goes through.
struct depth_draw {
  int free_steps = 0;      // n = max(r - k, 0)
  int gradient_steps = 0;  // min(k, r)

  constexpr int total() const { return free_steps + gradient_steps; }  // r
  constexpr bool operator==(const depth_draw&) const = default;

  /// r = `steps` with gradient through the last `backprop` of them; 0: through all.
  static constexpr depth_draw of(int steps, int backprop) {
    const int with_gradient = backprop == 0 ? steps : (std::min)(backprop, steps);
    return {steps - with_gradient, with_gradient};
  }
  /// The larger of either kind of steps: memory for it is enough for both draws.
  static constexpr depth_draw larger(depth_draw a, depth_draw b) {
    return {(std::max)(a.free_steps, b.free_steps), (std::max)(a.gradient_steps, b.gradient_steps)};
  }
};

/// A rule that draws r. Draws are functions of (seed, optimiser step counted from 1, micro-batch) alone. Callers that want one
/// depth for a whole optimiser step, so that accumulated gradients equal those of the large batch, leave `micro_batch` at 0.
///   draw(seed, optimiser_step, micro_batch)  the steps to run
///   mean_depth()   the mean recurrence rbar, to which evaluation rounds
///   most_draw()    what to plan memory for: the most steps without gradient that are drawn, and the most with, which need not be
///                  of one draw; or so many that a draw exceeds them with probability below 10^-6. A draw beyond costs an
///                  allocation, nothing else
///   validate()     throws for fields that make no rule, naming the numbers; the others call it
/// A rule that curriculum can grow has scaled(f) besides: every depth d replaced by 1 + (d - 1) f, f in [0, 1].
template <class Rule>
concept depth_rule = std::copyable<Rule> && requires(const Rule& rule, seed s, std::uint64_t step, std::uint32_t micro_batch) {
  { rule.draw(s, step, micro_batch) } -> std::same_as<depth_draw>;
  { rule.draw(s, step) } -> std::same_as<depth_draw>;
  { rule.mean_depth() } -> std::same_as<double>;
  { rule.most_draw() } -> std::same_as<depth_draw>;
  rule.validate();
};

namespace detail {

// Depths are ints; planning wants room for the sum of free and gradient steps.
inline constexpr int depth_limit = 1 << 24;

inline void check_depth(const char* rule, const char* field, double depth) {
  require(depth >= 1 && depth <= depth_limit, rule, ": ", field, " is ", depth, "; a depth lies in [1, ", depth_limit, "]");
}
inline void check_backprop(const char* rule, int backprop) {
  require(backprop >= 0, rule, ": backprop is ", backprop, "; it is a number of steps, or 0 for all steps");
}

inline int scaled_depth(int depth, double f) { return static_cast<int>(std::lround(1 + (depth - 1) * f)); }

}  // namespace detail

/// The same number of steps always.
struct fixed_depth {
  int steps = 1;
  int backprop = 0;  // steps with gradient; 0: all

  void validate() const {
    detail::check_depth("fixed_depth", "steps", steps);
    detail::check_backprop("fixed_depth", backprop);
  }
  depth_draw draw(seed, std::uint64_t, std::uint32_t = 0) const {
    validate();
    return depth_draw::of(steps, backprop);
  }
  double mean_depth() const { return validate(), steps; }
  depth_draw most_draw() const { return validate(), depth_draw::of(steps, backprop); }
  fixed_depth scaled(double f) const { return {detail::scaled_depth(steps, f), backprop}; }
};

/// Every number of steps in low..high equally often.
struct uniform_depth {
  int low = 1, high = 1;
  int backprop = 0;  // steps with gradient; 0: all

  void validate() const {
    detail::check_depth("uniform_depth", "low", low);
    detail::check_depth("uniform_depth", "high", high);
    require(low <= high, "uniform_depth: low is ", low, " and high is ", high, "; low must not exceed high");
    detail::check_backprop("uniform_depth", backprop);
  }
  depth_draw draw(seed s, std::uint64_t optimiser_step, std::uint32_t micro_batch = 0) const {
    validate();
    random_sequence numbers(random_stream(s, purpose::depth), optimiser_step, micro_batch);
    return depth_draw::of(low + static_cast<int>(numbers.below(static_cast<std::uint64_t>(high - low) + 1)), backprop);
  }
  double mean_depth() const { return validate(), (low + high) / 2.0; }
  depth_draw most_draw() const { return validate(), depth_draw::of(high, backprop); }
  uniform_depth scaled(double f) const { return {detail::scaled_depth(low, f), detail::scaled_depth(high, f), backprop}; }
};

/// Huginn's rule: tau ~ LogNormal(ln(mean) - sigma^2 / 2, sigma), so that E[tau] = mean, and Poisson(tau) + 1 steps: mean + 1
/// steps on average. The distribution has no largest value.
struct lognormal_poisson {
  double mean = 32;  // rbar
  int backprop = 8;  // steps with gradient, k; 0: all
  double sigma = 0.5;

  void validate() const {
    require(mean > 0 && std::isfinite(mean), "lognormal_poisson: mean is ", mean, "; it must be positive and finite");
    require(sigma >= 0 && std::isfinite(sigma), "lognormal_poisson: sigma is ", sigma, "; it must be finite and not negative");
    // Normal numbers of 52 bits end at 8.3; what they give must stay in the range of Poisson draws.
    const double most = mean * std::exp(8.3 * sigma - sigma * sigma / 2);
    require(most <= 1e6, "lognormal_poisson: with mean ", mean, " and sigma ", sigma, " a draw may reach ", most,
            " steps; at most 10^6 are possible");
    detail::check_backprop("lognormal_poisson", backprop);
  }
  depth_draw draw(seed s, std::uint64_t optimiser_step, std::uint32_t micro_batch = 0) const {
    validate();
    random_sequence numbers(random_stream(s, purpose::depth), optimiser_step, micro_batch);
    const double tau = numbers.lognormal(std::log(mean) - sigma * sigma / 2, sigma);
    return depth_draw::of(static_cast<int>(numbers.poisson(tau)) + 1, backprop);
  }
  double mean_depth() const { return validate(), mean; }
  /// Exceeded with probability below 10^-6: at most 5e-7 for ln(tau) more than 4.892 sigma above its mean, and, for tau at that
  /// bound or below, at most 5e-7 for Poisson(tau) >= m by Chernoff's bound exp(m - tau) (tau / m)^m.
  depth_draw most_draw() const {
    validate();
    const double tau = mean * std::exp(4.892 * sigma - sigma * sigma / 2);
    double m = std::ceil(tau);
    while (m - tau + m * std::log(tau / m) > std::log(5e-7)) ++m;
    return depth_draw::of(static_cast<int>(m), backprop);  // Poisson(tau) <= m - 1, and one step more
  }
  lognormal_poisson scaled(double f) const {
    lognormal_poisson rule = *this;
    rule.mean = 1 + (mean - 1) * f;
    return rule;
  }
};

/// A depth rule whose depths can be scaled.
template <class Rule>
concept scalable_depth_rule = depth_rule<Rule> && requires(const Rule& rule) {
  { rule.scaled(0.5) } -> std::same_as<Rule>;
};

/// A rule whose depth grows during training: at optimiser step t of T = total_steps every depth d of the rule, its mean above
/// all, is 1 + (d - 1) (1 - sqrt(1 - u)), u = min(1, t / (0.75 T)). Shallow steps are cheap, and the depth is only needed late.
template <scalable_depth_rule Rule>
struct curriculum {
  Rule rule{};
  std::uint64_t total_steps = 0;

  void validate() const {
    rule.validate();
    require(total_steps > 0, "curriculum: total_steps is 0; give the number of optimiser steps of the whole training");
    require(rule.mean_depth() >= 1, "curriculum: the mean is ", rule.mean_depth(),
            "; depth grows from 1, so it must be 1 or more");
  }
  /// The rule of one optimiser step.
  Rule at(std::uint64_t optimiser_step) const {
    validate();
    const double u = (std::min)(1.0, static_cast<double>(optimiser_step) / (0.75 * static_cast<double>(total_steps)));
    return rule.scaled(1 - std::sqrt(1 - u));
  }
  depth_draw draw(seed s, std::uint64_t optimiser_step, std::uint32_t micro_batch = 0) const {
    return at(optimiser_step).draw(s, optimiser_step, micro_batch);
  }
  /// Of the finished training: what evaluation uses.
  double mean_depth() const { return validate(), rule.mean_depth(); }
  depth_draw most_draw() const { return validate(), rule.most_draw(); }
};
template <scalable_depth_rule Rule>
curriculum(Rule, std::uint64_t) -> curriculum<Rule>;

GYRE_END
