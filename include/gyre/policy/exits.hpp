// Exit rules: after how many recurrence steps a token is finished (recurrent_depth, section 5.1). Rules are types, their
// numbers are run-time fields.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include <gyre/core/error.hpp>

GYRE_BEGIN

namespace exits {

/// What a rule looks at. Criteria of the output distribution would be a further kind, for which coda and head run at every
/// checked step.
enum class evidence : std::uint8_t {
  none,         // the number of steps alone
  state_change  // the state of this step and of the one before, both before the norm n_c
};

/// One token after one step.
struct observation {
  int steps = 0;      // steps run, from 1
  double change = 0;  // ||s_t - s_{t-1}||
  double norm = 0;    // ||s_t||
};

}  // namespace exits

/// A rule of exit. It is trivially copyable and small (32 bytes), so that requests of different rules share one batch:
///   static constexpr exits::evidence reads
///   most_steps()        r: the token leaves after this many steps whatever else holds, and its cache has this many slots
///   checks(steps)       whether leaves() wants to be asked after `steps` steps
///   leaves(observation) whether the token is finished
///   validate()          throws gyre::error for fields that make no rule, naming the numbers
template <class E>
concept exit_rule = std::is_trivially_copyable_v<E> && requires(const E& rule, int steps, exits::observation seen) {
  { E::reads } -> std::convertible_to<exits::evidence>;
  { rule.most_steps() } -> std::same_as<int>;
  { rule.checks(steps) } -> std::same_as<bool>;
  { rule.leaves(seen) } -> std::same_as<bool>;
  rule.validate();
};

namespace exits {

/// Every token runs the same number of steps.
struct fixed {
  int steps = 0;

  static constexpr evidence reads = evidence::none;
  int most_steps() const { return steps; }
  static bool checks(int) { return false; }
  static bool leaves(const observation&) { return false; }
  void validate() const { require(steps >= 1, "exits::fixed: steps is ", steps, "; a token needs at least 1 step"); }
};

/// Leaves when the state has settled: ||s_t - s_{t-1}|| / ||s_t|| < below, checked after steps least, least + stride, ...
struct latent_diff {
  float below = 0.03f;
  int cap = 32;  // most steps
  int least = 1;
  int stride = 1;

  static constexpr evidence reads = evidence::state_change;
  int most_steps() const { return cap; }
  bool checks(int steps) const { return steps >= least && (steps - least) % stride == 0; }
  bool leaves(const observation& seen) const { return seen.change < static_cast<double>(below) * seen.norm; }
  void validate() const {
    require(std::isfinite(below) && below >= 0, "exits::latent_diff: below is ", below, "; it must be finite and not negative");
    require(cap >= 1, "exits::latent_diff: cap is ", cap, "; a token needs at least 1 step");
    require(least >= 1 && stride >= 1, "exits::latent_diff: least is ", least, " and stride is ", stride,
            "; both must be at least 1");
  }
};

/// Any rule, as a value: what requests hold. A plain number of steps is exits::fixed.
class any {
 public:
  any() : any(fixed{}) {}  // no rule: validate() throws
  any(int steps) : any(fixed{steps}) {}
  template <exit_rule E>
  requires(!std::same_as<E, any>) any(const E& rule) : calls_(&table<E>) {
    static_assert(sizeof(E) <= room, "exits::any: a rule has at most 32 bytes");
    static_assert(alignof(E) <= alignof(std::max_align_t), "exits::any: a rule has no alignment beyond that of max_align_t");
    ::new (static_cast<void*>(memory_.data())) E(rule);
  }

  evidence reads() const { return calls_->reads; }
  int most_steps() const { return calls_->most_steps(memory_.data()); }
  bool checks(int steps) const { return calls_->checks(memory_.data(), steps); }
  bool leaves(const observation& seen) const { return calls_->leaves(memory_.data(), seen); }
  void validate() const { calls_->validate(memory_.data()); }

 private:
  static constexpr std::size_t room = 32;
  struct calls {
    evidence reads;
    int (*most_steps)(const std::byte*);
    bool (*checks)(const std::byte*, int);
    bool (*leaves)(const std::byte*, const observation&);
    void (*validate)(const std::byte*);
  };
  template <class E>
  static const E& as(const std::byte* memory) {
    return *std::launder(reinterpret_cast<const E*>(memory));
  }
  template <class E>
  static constexpr calls table{E::reads, [](const std::byte* m) { return as<E>(m).most_steps(); },
                               [](const std::byte* m, int steps) { return as<E>(m).checks(steps); },
                               [](const std::byte* m, const observation& seen) { return as<E>(m).leaves(seen); },
                               [](const std::byte* m) { as<E>(m).validate(); }};

  alignas(std::max_align_t) std::array<std::byte, room> memory_{};
  const calls* calls_;
};

}  // namespace exits

GYRE_END
