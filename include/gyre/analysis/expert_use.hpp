// How a model uses its experts over depth: attention_mixtures, section 7. The metrics are ours.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/core/parameters.hpp>
#include <gyre/core/pass_observer.hpp>

GYRE_BEGIN

/// exp(entropy) of loads: how many experts are used as if all of them were used alike; 0 without any load.
inline double diversity(std::span<const std::int64_t> loads) {
  const double total = static_cast<double>(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}));
  if (!(total > 0)) return 0;
  double entropy = 0;
  for (const std::int64_t load : loads)
    if (load > 0) entropy -= static_cast<double>(load) / total * std::log(static_cast<double>(load) / total);
  return std::exp(entropy);
}

/// What was seen of one group of experts: those of one router at every step, or of a layered model's routers, one a depth.
struct expert_use_report {
  index experts = 0, active = 0, depths = 0;
  bool shared = true;               // one router at all depths, so that depths compete for the same experts
  std::vector<std::int64_t> loads;  // (depths, experts): pairs of a token and an expert
  double per_depth_diversity = 0;   // the headline: exp(entropy) of use, mean over depths
  double pooled_diversity = 0;      // of the loads summed over depths
  double distinct_sets = 0;         // distinct sets of chosen experts, mean over depths
  double distinct_per_token = 0;    // distinct experts of a token over all depths / (D k); only where shared
  /// Share of experts that are used (load above 1% of uniform) at n or more depths, n = 1 .. D; only where shared.
  std::vector<double> used_at_least;
  double hits = 0;  // mean load of an expert at a depth: at least 1,000 make the numbers steady

  std::span<const std::int64_t> at(index depth) const {
    return std::span<const std::int64_t>(loads).subspan(static_cast<std::size_t>(depth * experts),
                                                        static_cast<std::size_t>(experts));
  }
};

/// Collects the choices of one kind of router while a model is evaluated. Passes must run all steps of a text at once (evaluate
/// does), for a token's experts are followed from step to step.
template <precision P>
class expert_use final : public pass_observer<P> {
 public:
  /// `routers`: places of selection biases in the flat buffer, by depth. One: it is shared by all steps. Several, of equal sizes:
  /// those of a layered model. See routers_of.
  explicit expert_use(std::vector<index> routers) : routers_(std::move(routers)) {
    require(!routers_.empty(), "expert_use: no routers to watch");
  }

  void routed(const routing_event<P>& event) override {
    const auto found = std::find(routers_.begin(), routers_.end(), event.router);
    if (found == routers_.end()) return;
    const bool shared = routers_.size() == 1;
    const index depth = shared ? event.step : found - routers_.begin();
    if (report_.experts == 0) report_.experts = event.experts, report_.active = event.active, report_.shared = shared;
    require(event.experts == report_.experts && event.active == report_.active, "expert_use: routers of ", report_.active,
            " of ", report_.experts, " and of ", event.active, " of ", event.experts, " experts cannot be watched as one");
    if (depth >= report_.depths) {
      report_.depths = depth + 1;
      report_.loads.resize(static_cast<std::size_t>(report_.depths * report_.experts));
      sets_.resize(static_cast<std::size_t>(report_.depths));
    }
    const auto k = static_cast<std::size_t>(event.active);
    for (std::size_t first = 0; first < event.chosen.size(); first += k) {
      const auto set = event.chosen.subspan(first, k);
      for (const std::int32_t e : set) ++report_.loads[static_cast<std::size_t>(depth * report_.experts + e)];
      sets_[static_cast<std::size_t>(depth)].insert(std::vector<std::int32_t>(set.begin(), set.end()));
    }
    if (shared) follow(event);
  }

  expert_use_report report() const {
    expert_use_report r = report_;
    if (r.depths == 0) return r;
    std::vector<std::int64_t> pooled(static_cast<std::size_t>(r.experts));
    std::vector<int> depths_used(pooled.size());
    for (index depth = 0; depth < r.depths; ++depth) {
      const auto loads = r.at(depth);
      r.per_depth_diversity += diversity(loads) / static_cast<double>(r.depths);
      r.distinct_sets += static_cast<double>(sets_[static_cast<std::size_t>(depth)].size()) / static_cast<double>(r.depths);
      const auto total = static_cast<double>(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}));
      for (std::size_t e = 0; e < pooled.size(); ++e) {
        pooled[e] += loads[e];
        depths_used[e] += static_cast<double>(loads[e]) > 0.01 * total / static_cast<double>(r.experts);
      }
    }
    r.pooled_diversity = diversity(pooled);
    r.hits = static_cast<double>(std::accumulate(pooled.begin(), pooled.end(), std::int64_t{0})) /
             static_cast<double>(r.experts * r.depths);
    if (!r.shared) return r;
    r.distinct_per_token = followed_ > 0 ? distinct_ / static_cast<double>(followed_) : 0;
    for (int n = 1; n <= r.depths; ++n)
      r.used_at_least.push_back(
          static_cast<double>(std::count_if(depths_used.begin(), depths_used.end(), [n](int used) { return used >= n; })) /
          static_cast<double>(r.experts));
    return r;
  }

 private:
  // Experts that each row has chosen at the steps so far; counted at the last step.
  void follow(const routing_event<P>& event) {
    const std::size_t rows = event.chosen.size() / static_cast<std::size_t>(event.active);
    if (event.step == 0) so_far_.assign(rows, {});
    if (so_far_.size() != rows) return;
    for (std::size_t i = 0; i < event.chosen.size(); ++i)
      so_far_[i / static_cast<std::size_t>(event.active)].push_back(event.chosen[i]);
    if (event.step + 1 != event.steps) return;
    for (std::vector<std::int32_t>& row : so_far_) {
      const auto all = static_cast<double>(row.size());
      std::sort(row.begin(), row.end());
      distinct_ += static_cast<double>(std::unique(row.begin(), row.end()) - row.begin()) / all;
      ++followed_;
    }
    so_far_.clear();
  }

  std::vector<index> routers_;
  expert_use_report report_;
  std::vector<std::set<std::vector<std::int32_t>>> sets_;  // (depths)
  std::vector<std::vector<std::int32_t>> so_far_;          // (rows)
  double distinct_ = 0;
  std::int64_t followed_ = 0;
};

/// Places of the selection biases of an architecture whose name ends so: those of expert attention end in "experts.router.bias",
/// those of mixed projections in "attn.router.bias" or "depth_attn.router.bias".
template <class A>
std::vector<index> routers_of(std::string_view ending = "experts.router.bias") {
  std::vector<index> places;
  const std::vector<std::string> names = parameter_table<A>::names();
  for (std::size_t n = 0; n < names.size(); ++n)
    if (names[n].ends_with(ending)) places.push_back(parameter_table<A>::entries[n].offset);
  return places;
}

GYRE_END
