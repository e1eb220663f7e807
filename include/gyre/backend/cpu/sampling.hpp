// Tokens from logits on the `cpu` backend (recurrent_depth, section 5.6): vectors for exponentials, a heap for what is kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <gyre/backend/cpu/simd_math.hpp>
#include <gyre/backend/cpu/split.hpp>
#include <gyre/ops/sampling.hpp>

GYRE_BEGIN

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
    check_history(t, logits.size());
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
  const bool greedy = detail::is_greedy(rules);
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
  detail::check_uniform(uniform);
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

/// -1 where logits have no softmax: one is NaN or +inf, or all are -inf. Else the likeliest token, the first of equals.
template <class S>
token likeliest_token(std::span<const S> logits) {
  S largest = -std::numeric_limits<S>::infinity();
  token likeliest = -1;
  for (std::size_t t = 0; t < logits.size(); ++t) {
    if (!(logits[t] < std::numeric_limits<S>::infinity())) return -1;
    if (logits[t] > largest) largest = logits[t], likeliest = static_cast<token>(t);
  }
  return likeliest;
}

template <class S>
void sample_rows(thread_pool& pool, matrix_view<const S> logits, std::span<const sampling_row> rows,
                 std::span<const token> histories, token* chosen, double* log_probabilities) {
  check_sampling(logits.rows, logits.cols, rows, histories);
  if (logits.rows == 0) return;
  static_assert(sizeof(double) == 2 * sizeof(token));
  const index vocabulary = logits.cols, scratch = vocabulary + (vocabulary + 1) / 2;  // doubles: probabilities, then ids
  const auto choose = [&](index i, double* memory) {
    const sampling_row& row = rows[static_cast<std::size_t>(i)];
    const auto size = static_cast<std::size_t>(vocabulary);
    const std::span<const S> z(logits[i], size);
    sampled_token drawn{likeliest_token(z), 0};
    // The likeliest is all that greedy drafts want, which are most.
    const bool known = row.id_only && is_greedy(row.rules) && !is_penalised(row);
    if (drawn.id >= 0 && !known)
      drawn = sample(z, history_of(row, histories), row.rules, row.uniform,
                     {{memory, size}, {reinterpret_cast<token*>(memory + vocabulary), size}});
    chosen[i] = drawn.id;
    log_probabilities[i] = row.id_only ? 0 : drawn.log_probability;
  };
  constexpr index cost = 8;  // of a logit, in that of an addition: two exponentials at most
  const index step = (std::max)(index{1}, inline_work / (cost * vocabulary)), tasks = (logits.rows + step - 1) / step;
  pool.run(tasks, sizeof(double) * static_cast<std::size_t>(scratch), [&](index task, int worker) {
    double* const memory = pool.scratch<double>(worker, scratch);
    for (index i = task * step; i < (std::min)(logits.rows, (task + 1) * step); ++i) choose(i, memory);
  });
}

}  // namespace detail

GYRE_END
