// Reference choice of tokens: one step after the other, a full sort.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <gyre/core/types.hpp>
#include <gyre/ops/sampling.hpp>

GYRE_BEGIN

namespace detail {

/// The token that `row` draws from logits that have a softmax.
inline token sampled_by_steps(std::vector<double> z, const sampling_row& row, std::span<const token> histories) {
  const sampling& rules = row.rules;
  if (is_penalised(row)) {
    constexpr double most = (std::numeric_limits<double>::max)();
    std::vector<bool> seen(z.size());
    for (const token t : history_of(row, histories)) seen[static_cast<std::size_t>(t)] = true;
    for (std::size_t t = 0; t < z.size(); ++t)
      if (seen[t] && std::isfinite(z[t]))
        z[t] = (std::clamp)(z[t] > 0 ? z[t] / rules.repetition_penalty : z[t] * rules.repetition_penalty, -most, most);
  }
  const auto likeliest = std::max_element(z.begin(), z.end());
  if (is_greedy(rules)) return static_cast<token>(likeliest - z.begin());

  const double top = *likeliest;
  double sum = 0;
  for (double& x : z) sum += x = std::exp((x - top) / rules.temperature);
  for (double& x : z) x /= sum;
  std::vector<std::size_t> order(z.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return z[a] > z[b]; });
  const double least = rules.min_p * z[order[0]];
  double cumulated = 0;
  for (std::size_t place = 0; place < order.size(); ++place) {
    double& x = z[order[place]];
    cumulated += x;
    const bool behind_k = rules.top_k > 0 && place >= static_cast<std::size_t>(rules.top_k);
    const bool behind_p = rules.top_p < 1 && place > 0 && cumulated > rules.top_p;
    if (behind_k || behind_p || x < least) x = 0;
  }
  sum = 0;
  for (const double x : z) sum += x;
  std::size_t chosen = 0;
  cumulated = 0;
  for (std::size_t t = 0; t < z.size() && !(row.uniform < cumulated); ++t)
    if (z[t] > 0) chosen = t, cumulated += z[t] / sum;
  return static_cast<token>(chosen);
}

struct reference_sampling {
  template <class S, class P>
  void sample(matrix_view<const S> logits, std::span<const sampling_row> rows, std::span<const token> histories, token* chosen,
              P* log_probabilities) {
    using std::exp, std::log;
    check_sampling(logits.rows, logits.cols, rows, histories);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (index i = 0; i < logits.rows; ++i) {
      const S* const z = logits[i];
      const sampling_row& row = rows[static_cast<std::size_t>(i)];
      std::vector<double> values;
      for (index v = 0; v < logits.cols; ++v) values.push_back(static_cast<double>(real_part(z[v])));
      chosen[i] = -1, log_probabilities[i] = P(0);
      double top = -infinity;
      bool sound = true;
      for (const double x : values) sound = sound && x < infinity, top = (std::max)(top, x);
      if (!sound || top == -infinity) continue;
      chosen[i] = sampled_by_steps(std::move(values), row, histories);
      if (row.id_only) continue;
      P sum(0);
      for (index v = 0; v < logits.cols; ++v) sum += exp(P(z[v]) - P(top));
      log_probabilities[i] = P(z[chosen[i]]) - (log(sum) + P(top));
    }
  }
};

}  // namespace detail

GYRE_END
