// Learning rate over training: the factor that multiplies the optimiser's learning rate at each step.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <numbers>

#include <gyre/core/error.hpp>

GYRE_BEGIN

/// A schedule gives factor(step, total) in [0, 1] for step = 1, 2, ... of a training of `total` optimiser steps; steps beyond
/// `total` keep the last factor. validate() throws for fields that make no schedule, naming the numbers; the call does too, and
/// for step 0 or total 0.
template <class Schedule>
concept learning_rate_schedule = std::copyable<Schedule> && requires(const Schedule& schedule, std::uint64_t step) {
  { schedule(step, step) } -> std::same_as<double>;
  schedule.validate();
};

namespace detail {

inline void check_schedule_step(const char* name, std::uint64_t step, std::uint64_t total) {
  require(step > 0 && total > 0, name, ": step ", step, " of ", total, "; steps count from 1");
}
inline void check_schedule_fraction(const char* name, const char* field, double value) {
  require(value >= 0 && value <= 1, name, ": ", field, " is ", value, "; it is a fraction in [0, 1]");
}
// Linear from 1 / warm-up at step 1 to 1 at step `warm_up`.
inline double warm_up_factor(std::uint64_t step, std::uint64_t warm_up) {
  return step >= warm_up ? 1.0 : static_cast<double>(step) / static_cast<double>(warm_up);
}

}  // namespace detail

/// Factor 1 from the first step to the last.
struct constant_rate {
  void validate() const {}
  double operator()(std::uint64_t step, std::uint64_t total) const {
    detail::check_schedule_step("constant_rate", step, total);
    return 1;
  }
};

/// Linear warm-up from 1 / warm_up at step 1 to 1 at step `warm_up`; 1 until step cooldown_start * total; from there linear
/// down to `floor` at step `total` (recurrent_depth, section 2). Where warm-up and cool-down overlap, the smaller one holds.
struct warmup_constant_cooldown {
  std::uint64_t warm_up = 0;    // steps
  double cooldown_start = 0.7;  // as a fraction of all steps; 1: no cool-down
  double floor = 0;             // the last step's factor

  void validate() const {
    detail::check_schedule_fraction("warmup_constant_cooldown", "cooldown_start", cooldown_start);
    detail::check_schedule_fraction("warmup_constant_cooldown", "floor", floor);
  }
  double operator()(std::uint64_t step, std::uint64_t total) const {
    validate();
    detail::check_schedule_step("warmup_constant_cooldown", step, total);
    const double at = static_cast<double>((std::min)(step, total)), end = static_cast<double>(total);
    const double start = cooldown_start * end;
    const double cooled = at <= start ? 1.0 : floor + (1 - floor) * ((end - at) / (end - start));
    return (std::min)(detail::warm_up_factor((std::min)(step, total), warm_up), cooled);
  }
};

/// Linear warm-up as above, then half a cosine from 1 at step `warm_up` down to `floor` at step `total`. A training that ends
/// within the warm-up stays in it.
struct warmup_cosine {
  std::uint64_t warm_up = 0;  // steps
  double floor = 0;           // the last step's factor

  void validate() const { detail::check_schedule_fraction("warmup_cosine", "floor", floor); }
  double operator()(std::uint64_t step, std::uint64_t total) const {
    validate();
    detail::check_schedule_step("warmup_cosine", step, total);
    const std::uint64_t at = (std::min)(step, total);
    if (at <= warm_up) return detail::warm_up_factor(at, warm_up);
    const double done = static_cast<double>(at - warm_up) / static_cast<double>(total - warm_up);
    // sin^2 instead of (1 + cos) / 2: it ends at exactly 0.
    const double half = std::sin(std::numbers::pi / 2 * (1 - done));
    return floor + (1 - floor) * (half * half);
  }
};

GYRE_END
