// The loss of a network on held-out rows, at any number of steps.
#pragma once

#include <cmath>
#include <functional>
#include <numbers>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include <gyre/train/batch_pass.hpp>

GYRE_BEGIN

/// Mean next-token cross-entropy at one number of steps.
struct evaluation {
  int depth = 0;     // r
  double loss = 0;   // nats per counted target
  index tokens = 0;  // counted targets

  double bits_per_token() const { return loss / std::numbers::ln2; }
  /// `bytes` is what the counted targets stand for: as many as they are for byte tokens.
  double bits_per_byte(double bytes) const { return bits_per_token() * static_cast<double>(tokens) / bytes; }
  double perplexity() const { return std::exp(loss); }
};

/// How an evaluation runs.
template <class Network>
struct evaluation_options {
  seed states{};                                                        // of initial states
  double state_scale = 1;                                               // of random ones
  pass_observer<typename Network::precision_type>* observer = nullptr;  // hears what layers do
  std::function<bool()> stop = {};                                      // asked before every batch; true ends the evaluation
};

/// Evaluates at each of `depths`, in that order; those that were finished when options.stop said so. The result depends on the
/// batches, the weights and the seed of the initial states alone: states are keyed by the row's number within the batches, as
/// step 0, which no training step is. `batches` is any range of batches that can be walked once per depth.
template <class Network, std::ranges::input_range Batches>
std::vector<evaluation> evaluate(const Network& net, Batches&& batches, std::span<const int> depths,
                                 const std::type_identity_t<evaluation_options<Network>>& options = {}) {
  using A = typename Network::architecture_type;
  detail::batch_pass<Network> pass(net);
  std::vector<evaluation> results;
  for (const int depth : depths) {
    require(depth > 0, "evaluate: ", depth, " steps; a recurrence runs at least 1");
    evaluation result{depth};
    std::uint64_t row = 0;
    double sum = 0;
    const depth_draw draw{depth, 0};
    for (const batch& b : batches) {
      if (options.stop && options.stop()) return results;
      result.tokens += detail::check_batch<A>("evaluate", b);
      if (!pass.planned(b.rows, b.length, draw, false)) pass.plan(b.rows, b.length, draw, false);
      sum += pass.run(b, row, state_key{options.states, 0, options.state_scale}, draw, nullptr, nullptr, options.observer);
      row += static_cast<std::uint64_t>(b.rows);
    }
    require(result.tokens > 0, "evaluate: no target counts in these batches");
    result.loss = sum / static_cast<double>(result.tokens);
    results.push_back(result);
  }
  return results;
}
/// Of one depth. Throws gyre::error if it was stopped.
template <class Network, std::ranges::input_range Batches>
evaluation evaluate(const Network& net, Batches&& batches, int depth,
                    const std::type_identity_t<evaluation_options<Network>>& options = {}) {
  const auto results = evaluate(net, batches, std::span<const int>(&depth, 1), options);
  require(!results.empty(), "evaluate: stopped before depth ", depth, " was done");
  return results.front();
}

GYRE_END
