// From logits to a token (recurrent_depth, section 5.6).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <gyre/backend/cpu/simd_math.hpp>
#include <gyre/core/error.hpp>
#include <gyre/core/random.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// How a token is chosen. The steps run in this order, each on what the one before has left; ties go to the lower id:
///   1. repetition penalty  logits of tokens of prompt and output: positive ones divided, negative ones multiplied by it, once
///   2. temperature         logits are divided by it; 0 is greedy: the largest logit wins and the rest is skipped
///   3. softmax
///   4. top_k               the k most likely tokens stay; 0: all
///   5. top_p               in order of probability (not renormalised after top_k), tokens stay as long as the sum including
///                          them is at most top_p; the first always stays; 1: all
///   6. min_p               tokens less likely than min_p times the likeliest go; 0: none
///   7. renormalise, draw with one uniform number
struct sampling {
  float temperature = 1;         // >= 0
  float top_p = 1;               // in (0, 1]
  float min_p = 0;               // in [0, 1]
  float repetition_penalty = 1;  // > 0
  int top_k = 0;                 // >= 0
  bool greedy = false;

  /// Throws unless every field is in its range, naming the number.
  void validate() const {
    require(temperature >= 0 && std::isfinite(temperature), "sampling: temperature is ", temperature,
            "; it must be finite and not negative (0: greedy)");
    require(top_p > 0 && top_p <= 1, "sampling: top_p is ", top_p, "; it must lie in (0, 1] (1: off)");
    require(min_p >= 0 && min_p <= 1, "sampling: min_p is ", min_p, "; it must lie in [0, 1] (0: off)");
    require(repetition_penalty > 0 && std::isfinite(repetition_penalty), "sampling: repetition_penalty is ", repetition_penalty,
            "; it must be finite and positive (1: off)");
    require(top_k >= 0, "sampling: top_k is ", top_k, "; it must not be negative (0: off)");
  }
};

/// Memory for one call, given by the caller: both at least as long as the vocabulary.
struct sampling_workspace {
  std::span<double> probabilities;
  std::span<token> order;
};

/// A chosen token and its logarithmic probability under the softmax of the logits as they came.
struct sampled_token {
  token id = 0;
  double log_probability = 0;
};

/// The uniform number in [0, 1) that draws the token at `position` of `sequence`: the same whatever else is in the batch.
inline double sampling_uniform(seed s, std::uint64_t sequence, std::uint64_t position) {
  return random_stream(s, purpose::sampling).uniform(counter::of(sequence, position));
}

namespace detail {

struct logit_summary {
  double largest = 0;
  double log_total = 0;  // ln(sum exp(logit - largest))
};

/// weights[t] = exp(factor * weights[t]); returns their sum.
inline double exponentials(std::span<double> weights, double factor) {
  const simd<double> scale = simd<double>::broadcast(factor);
  return sum(accumulate_vectors<double>(static_cast<index>(weights.size()), [&](index t, auto lanes, simd<double> total) {
    double* const at = weights.data() + t;
    // Lanes behind the last weight: exp(-inf) adds nothing.
    const simd<double> e = exp(lanes.load_or(at, -std::numeric_limits<double>::infinity()) * scale);
    lanes.store(e, at);
    return total + e;
  }));
}
inline void normalise(std::span<double> p) {
  const auto each = [&](auto f) { return accumulate_vectors<double>(static_cast<index>(p.size()), f); };
  const simd<double> total = simd<double>::broadcast(
      sum(each([&](index t, auto lanes, simd<double> before) { return before + lanes.load(p.data() + t); })));
  each([&](index t, auto lanes, simd<double> nothing) {
    lanes.store(lanes.load(p.data() + t) / total, p.data() + t);
    return nothing;
  });
}

// Writes exp(logit - largest) to `weights`. Refuses logits that have no softmax.
template <class T>
logit_summary softmax_weights(std::span<const T> logits, std::span<double> weights) {
  require(!logits.empty(), "sampling: no logits; the vocabulary is empty");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double largest = -infinity;
  bool sound = true;
  for (const T z : logits) {
    sound &= static_cast<double>(z) < infinity;
    largest = (std::max)(largest, static_cast<double>(z));
  }
  for (std::size_t t = 0; t < logits.size() && !sound; ++t)
    if (!(static_cast<double>(logits[t]) < infinity))
      fail("sampling: the logit of token ", t, " is ", static_cast<double>(logits[t]));
  require(std::isfinite(largest), "sampling: all ", logits.size(), " logits are -inf; no token is possible");
  for (std::size_t t = 0; t < logits.size(); ++t) weights[t] = static_cast<double>(logits[t]) - largest;
  return {largest, std::log(exponentials(weights, 1))};
}

// Writes the penalised logits of the tokens of `history`.
template <class T>
void penalise(std::span<const T> logits, std::span<const token> history, double penalty, std::span<double> penalised) {
  constexpr double most = (std::numeric_limits<double>::max)();
  for (const token t : history) {
    require(t >= 0 && static_cast<std::size_t>(t) < logits.size(), "sampling: the history holds token ", t,
            ", outside the vocabulary of ", logits.size());
    const double z = static_cast<double>(logits[static_cast<std::size_t>(t)]);
    if (!std::isfinite(z)) continue;  // impossible stays impossible
    // From the logit as it came: repeats change nothing. Finite logits stay finite.
    penalised[static_cast<std::size_t>(t)] = (std::clamp)(z > 0 ? z / penalty : z * penalty, -most, most);
  }
}

// p[t] of everything but what top_k and top_p keep becomes 0: the likeliest are taken from a heap until a rule ends it.
inline void keep_likeliest(std::span<double> p, std::span<token> order, const sampling& rules) {
  const auto at = [&](token t) -> double& { return p[static_cast<std::size_t>(t)]; };
  const auto less = [&](token a, token b) { return at(a) < at(b) || (at(a) == at(b) && a > b); };
  const std::size_t most = rules.top_k == 0 ? p.size() : static_cast<std::size_t>(rules.top_k);
  // All the less likely ones together have half of what top_p leaves over, so it ends before any of them.
  const double least = rules.top_p < 1 ? (1 - double{rules.top_p}) / (2 * static_cast<double>(p.size())) : -1;
  auto end = order.begin();
  for (std::size_t t = 0; t < p.size(); ++t) {
    *end = static_cast<token>(t);
    end += p[t] > least;
  }
  std::make_heap(order.begin(), end, less);
  double cumulated = 0;
  for (std::size_t kept = 0; kept < most && end != order.begin(); ++kept) {
    const token next = order.front();
    cumulated += at(next);
    if (rules.top_p < 1 && kept > 0 && cumulated > double{rules.top_p}) break;
    std::pop_heap(order.begin(), end--, less);
    at(next) = -at(next);  // kept; the heap is done with it
  }
  for (double& x : p) x = (std::max)(-x, 0.0);
}

}  // namespace detail

/// Steps 1 to 7 but the draw: workspace.probabilities[t] (t below the vocabulary) becomes the probability that `rules` give to
/// token t, summing to 1 within rounding; the likeliest token alone when greedy. `history`: the tokens of prompt and output so
/// far, in any order, with repeats. Allocates nothing. Returns ln(sum exp(logits)).
///
/// Throws for rules out of range, a logit that is NaN or +inf (-inf is legal: an impossible token), logits that are all -inf, a
/// token of `history` outside the vocabulary (looked at only when there is a penalty), and a workspace that is too small.
template <class T>
double sampling_probabilities(std::span<const T> logits, std::span<const token> history, const sampling& rules,
                              sampling_workspace workspace) {
  rules.validate();
  const std::size_t vocabulary = logits.size();
  require(workspace.probabilities.size() >= vocabulary && workspace.order.size() >= vocabulary, "sampling: workspace of ",
          workspace.probabilities.size(), " probabilities and ", workspace.order.size(), " ids for a vocabulary of ",
          vocabulary);
  const std::span<double> p = workspace.probabilities.first(vocabulary);
  const detail::logit_summary summary = detail::softmax_weights(logits, p);

  const bool penalised = rules.repetition_penalty != 1 && !history.empty();
  const bool greedy = rules.greedy || rules.temperature == 0;
  if (penalised || greedy || rules.temperature != 1) {
    for (std::size_t t = 0; t < vocabulary; ++t) p[t] = static_cast<double>(logits[t]);
    if (penalised) detail::penalise(logits, history, rules.repetition_penalty, p);
    const auto likeliest = std::max_element(p.begin(), p.end());  // the first of equals
    const double largest = *likeliest;
    if (greedy) {
      std::fill(p.begin(), p.end(), 0.0);
      *likeliest = 1;
      return summary.largest + summary.log_total;
    }
    for (double& x : p) x -= largest;
    detail::exponentials(p, 1 / double{rules.temperature});
  }
  detail::normalise(p);

  const bool cut = (rules.top_k > 0 && static_cast<std::size_t>(rules.top_k) < vocabulary) || rules.top_p < 1;
  if (cut) detail::keep_likeliest(p, workspace.order.first(vocabulary), rules);
  if (rules.min_p > 0) {
    const double least = rules.min_p * *std::max_element(p.begin(), p.end());
    for (double& x : p) x = x < least ? 0 : x;
  }
  if (cut || rules.min_p > 0) detail::normalise(p);
  return summary.largest + summary.log_total;
}

/// Chooses a token: the first whose cumulated probability, by id, exceeds `uniform` in [0, 1), which sampling_uniform gives.
/// Never one of probability 0. Otherwise as sampling_probabilities.
template <class T>
sampled_token sample(std::span<const T> logits, std::span<const token> history, const sampling& rules, double uniform,
                     sampling_workspace workspace) {
  require(uniform >= 0 && uniform < 1, "sample: the uniform number is ", uniform, "; it must lie in [0, 1)");
  const double log_total = sampling_probabilities(logits, history, rules, workspace);
  std::size_t chosen = 0;
  double cumulated = 0;
  // The sum may end just below 1, under `uniform`: then the last possible token stays chosen.
  for (std::size_t t = 0; t < logits.size() && !(uniform < cumulated); ++t)
    if (workspace.probabilities[t] > 0) {
      chosen = t;
      cumulated += workspace.probabilities[t];
    }
  return {static_cast<token>(chosen), static_cast<double>(logits[chosen]) - log_total};
}

namespace detail {

/// The token that sample() chooses, for drafts: without its probability, so that greedy rules without a penalty need no softmax,
/// which is most of the time; these take any logits of at least one token.
template <class T>
token sample_token(std::span<const T> logits, std::span<const token> history, const sampling& rules, double uniform,
                   sampling_workspace workspace) {
  if (!(rules.greedy || rules.temperature == 0) || (rules.repetition_penalty != 1 && !history.empty()))
    return sample(logits, history, rules, uniform, workspace).id;
  rules.validate();
  std::size_t likeliest = 0;
  for (std::size_t t = 0; t < logits.size(); ++t)
    if (logits[t] > logits[likeliest]) likeliest = t;
  return static_cast<token>(likeliest);
}

}  // namespace detail

GYRE_END
