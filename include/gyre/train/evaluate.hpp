// The loss of a network on held-out rows, at any number of steps.
#pragma once

#include <cmath>
#include <numbers>
#include <ranges>
#include <span>
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

/// Evaluates at each of `depths`, in that order. The result depends on the batches, the weights and the seed of the initial
/// states alone: states are keyed by the row's number within the batches, as step 0, which no training step is.
/// `batches` is any range of batches that can be walked once per depth. `observer` hears of what layers do.
template <class Network, std::ranges::input_range Batches>
std::vector<evaluation> evaluate(const Network& net, Batches&& batches, std::span<const int> depths, seed states = {},
                                 double state_scale = 1, pass_observer<typename Network::precision_type>* observer = nullptr) {
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
      result.tokens += detail::check_batch<A>("evaluate", b);
      if (!pass.planned(b.rows, b.length, draw, false)) pass.plan(b.rows, b.length, draw, false);
      sum += pass.run(b, row, state_key{states, 0, state_scale}, draw, nullptr, nullptr, observer);
      row += static_cast<std::uint64_t>(b.rows);
    }
    require(result.tokens > 0, "evaluate: no target counts in these batches");
    result.loss = sum / static_cast<double>(result.tokens);
    results.push_back(result);
  }
  return results;
}
template <class Network, std::ranges::input_range Batches>
evaluation evaluate(const Network& net, Batches&& batches, int depth, seed states = {}, double state_scale = 1,
                    pass_observer<typename Network::precision_type>* observer = nullptr) {
  return evaluate(net, batches, std::span<const int>(&depth, 1), states, state_scale, observer).front();
}

GYRE_END
