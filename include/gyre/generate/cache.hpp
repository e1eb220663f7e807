// Keys and values of one sequence: a slot for every executed layer and token.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <gyre/model/network.hpp>
#include <gyre/policy/cache.hpp>

GYRE_BEGIN

namespace detail {

/// The blocks that one token's cache is made of, in scalars: every layer's keys, then its values. The lane holds prelude, coda,
/// then the loop's blocks once a step. Layers tell it themselves, in a dry run.
struct cache_plan {
  std::vector<index> prelude, coda, step;
  index fixed_width = 0, step_width = 0;

  index width(int steps) const { return fixed_width + steps * step_width; }
};

}  // namespace detail

/// Device memory for the past of one sequence, (width, capacity) scalars laid out as cache_lane says, and how many steps each
/// past token ran. Kept for the next sequence when one ends.
template <class B, class T>
class sequence_cache {
 public:
  explicit sequence_cache(B device) : device_(std::move(device)) {}

  /// Begins an empty sequence of `steps` steps with room for `tokens`. Allocates only what is not there yet.
  void open(const detail::cache_plan& plan, int steps, index tokens) {
    plan_ = &plan, steps_ = steps, capacity_ = 0;
    const index bytes = plan.width(steps) * static_cast<index>(sizeof(T));
    if (memory_ != nullptr && bytes > 0) capacity_ = static_cast<index>(memory_->size()) / bytes / granule * granule;
    if (capacity_ < tokens) {
      memory_.reset();  // before the new one exists: nothing is kept
      capacity_ = rounded(tokens);
      memory_ = allocate(capacity_);
    }
    steps_run_.resize(static_cast<std::size_t>(capacity_));
  }
  /// Makes room for `tokens`, keeping the first `used`.
  void grow(index tokens, index used) {
    if (tokens <= capacity_) return;
    const index capacity = rounded(tokens);
    auto memory = allocate(capacity);
    index offset = 0;
    const auto move = [&](const std::vector<index>& blocks) {
      for (const index width : blocks) {
        device_.copy(matrix_view<const T>(memory_->template as<T>() + offset * capacity_, used, width),
                     matrix_view<T>(memory->template as<T>() + offset * capacity, used, width));
        offset += width;
      }
    };
    move(plan_->prelude), move(plan_->coda);
    for (int i = 0; i < steps_; ++i) move(plan_->step);
    memory_ = std::move(memory), capacity_ = capacity;
    steps_run_.resize(static_cast<std::size_t>(capacity));
  }

  index capacity() const { return capacity_; }
  cache_lane<T> lane(cache_lookup lookup) const {
    return {memory_->template as<T>(), capacity_, lookup == cache_lookup::skip ? steps_run_.data() : nullptr};
  }
  /// Tokens [first, first + count) ran `steps` steps.
  void note_steps(index first, index count, int steps) {
    std::fill_n(steps_run_.begin() + first, count, static_cast<std::int32_t>(steps));
  }

 private:
  static constexpr index granule = 16;  // tokens: blocks then begin on cache lines
  static constexpr index rounded(index tokens) { return (tokens + granule - 1) / granule * granule; }
  std::unique_ptr<device_buffer<B>> allocate(index capacity) {
    return std::make_unique<device_buffer<B>>(device_, static_cast<std::size_t>(plan_->width(steps_) * capacity) * sizeof(T));
  }

  B device_;
  const detail::cache_plan* plan_ = nullptr;
  int steps_ = 0;
  index capacity_ = 0;
  std::unique_ptr<device_buffer<B>> memory_;
  std::vector<std::int32_t> steps_run_;
};

GYRE_END
