// How many tokens each expert got in an optimiser step: what the load balance is made from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <gyre/core/parameters.hpp>
#include <gyre/core/pass_observer.hpp>
#include <gyre/policy/load_balance.hpp>
#include <gyre/train/batch.hpp>

GYRE_BEGIN

/// Counts over all passes of a step and all depths (attention_mixtures, section 4). Rows behind the last target that counts in
/// their sequence are padding: no loss of a token depends on them, and they are left out.
template <precision P>
class routing_loads final : public pass_observer<P> {
 public:
  /// The selection bias of one router and what its experts got.
  struct router {
    index offset = 0;  // in the parameter table
    index rows = 0, experts = 0;
    std::vector<std::int64_t> load;  // (rows, experts)
  };

  explicit routing_loads(std::span<const tensor_entry> table) {
    for (const tensor_entry& e : table)
      if (e.kind == role::selection_bias)
        routers_.push_back({e.offset, e.shape.matrix_rows(), e.shape.cols(),
                            std::vector<std::int64_t>(static_cast<std::size_t>(e.shape.size()))});
  }
  routing_loads(const routing_loads&) = default;
  routing_loads& operator=(const routing_loads&) = default;
  ~routing_loads() = default;

  bool empty() const { return routers_.empty(); }
  std::span<const router> routers() const { return routers_; }
  /// Hears every event too; null: nobody.
  void forward_to(pass_observer<P>* other) { other_ = other; }

  void clear() {
    for (router& r : routers_) std::fill(r.load.begin(), r.load.end(), 0);
  }
  /// The batch whose passes follow.
  void begin(const batch& b) {
    counted_.assign(static_cast<std::size_t>(b.rows), 0);
    for (index row = 0; row < b.rows; ++row)
      for (index i = b.length; i > 0; --i)
        if (b.targets[static_cast<std::size_t>(row * b.length + i - 1)] >= 0) {
          counted_[static_cast<std::size_t>(row)] = i;
          break;
        }
  }
  void routed(const routing_event<P>& event) override {
    if (other_ != nullptr) other_->routed(event);
    const auto at = std::lower_bound(routers_.begin(), routers_.end(), event.router,
                                     [](const router& r, index wanted) { return r.offset < wanted; });
    if (at == routers_.end() || at->offset != event.router) return;
    std::int64_t* const load = at->load.data() + event.bias_row * event.experts;
    std::size_t number = 0;
    for (const sequence_span& s : event.layout.sequences()) {
      const index count = number < counted_.size() ? (std::min)(counted_[number], s.count) : s.count;
      ++number;
      for (index pair = s.begin * event.active; pair < (s.begin + count) * event.active; ++pair)
        ++load[event.chosen[static_cast<std::size_t>(pair)]];
    }
  }

  // Loads are wanted at the end of the step; who else listens may want more.
  bool hears_late() const override { return other_ == nullptr; }
  bool hears_of_depths() const override { return other_ != nullptr && other_->hears_of_depths(); }
  void read_depths(const depth_reading_event<P>& event) override {
    if (other_ != nullptr) other_->read_depths(event);
  }

  /// The largest ratio of an expert's load to the mean of its row, over all routers; 0 where nothing was routed.
  double largest_share() const {
    double worst = 0;
    for (const router& r : routers_)
      for (index row = 0; row < r.rows; ++row) {
        const auto first = r.load.begin() + row * r.experts;
        std::int64_t total = 0, most = 0;
        for (index e = 0; e < r.experts; ++e) total += first[e], most = (std::max)(most, first[e]);
        if (total > 0)
          worst = (std::max)(worst, static_cast<double>(most) * static_cast<double>(r.experts) / static_cast<double>(total));
      }
    return worst;
  }

 private:
  std::vector<router> routers_;  // by offset
  std::vector<index> counted_;   // (rows): tokens of a row up to its last target that counts
  pass_observer<P>* other_ = nullptr;
};

GYRE_END
