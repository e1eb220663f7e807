// Calls of the choice of tokens.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include <gyre/ops/sampling.hpp>
#include <gyre/parity/bench.hpp>
#include <gyre/parity/settings_routing.hpp>

GYRE_BEGIN
namespace parity {

namespace detail {

/// How far a choice is from one that rounding could decide: the least distance, as a share of probability, between a cut or the
/// uniform number and what it is compared with. Infinite where nothing is.
template <class S>
long double sampling_margin(std::span<const S> logits, const sampling_row& row, std::span<const token> histories) {
  constexpr long double infinity = std::numeric_limits<long double>::infinity();
  const sampling& rules = row.rules;
  std::vector<long double> p(logits.begin(), logits.end());
  for (const long double z : p)
    if (!(z < infinity)) return infinity;
  if (gyre::detail::is_greedy(rules)) return infinity;
  std::vector<bool> seen(p.size());
  for (const token t : gyre::detail::history_of(row, histories)) seen[static_cast<std::size_t>(t)] = true;
  for (std::size_t t = 0; t < p.size(); ++t)
    if (seen[t]) p[t] = p[t] > 0 ? p[t] / rules.repetition_penalty : p[t] * rules.repetition_penalty;
  const long double top = *std::max_element(p.begin(), p.end());
  if (top == -infinity) return infinity;
  long double sum = 0;
  for (long double& x : p) sum += x = std::exp((x - top) / rules.temperature);

  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] > p[b]; });
  const auto distance = [](long double a, long double b) { return std::fabs(a - b); };
  long double margin = infinity, cumulated = 0;
  for (std::size_t place = 0; place < order.size(); ++place) {
    long double& x = p[order[place]];
    if (rules.min_p > 0) margin = (std::min)(margin, distance(x, rules.min_p));
    const bool kept = x >= rules.min_p && (rules.top_k == 0 || place < static_cast<std::size_t>(rules.top_k));
    cumulated += x / sum;
    if (rules.top_p < 1) margin = (std::min)(margin, distance(cumulated, rules.top_p));
    if (!kept || (rules.top_p < 1 && place > 0 && cumulated > rules.top_p)) x = 0;
  }
  sum = std::accumulate(p.begin(), p.end(), 0.0L);
  cumulated = 0;
  for (const long double x : p)
    if (x > 0) margin = (std::min)(margin, distance(cumulated += x / sum, row.uniform));
  return margin;
}

}  // namespace detail

/// Which token is drawn depends on no rounding: logits are multiples of 1/8 and penalties and temperatures powers of two, so that
/// equal weights are equal, of which there are many; cuts and uniform numbers are drawn anew where they fall near a border. So
/// tokens are compared as they are.
template <>
struct setting<operation::sample> {
  static constexpr dimension spread{"spread", {1, 8}}, temperature{"temperature", {0, 1, 2, 3}}, top_k{"top_k", {0, 1, 7, 40}},
      top_p{"top_p", {0, 1}}, min_p{"min_p", {0, 1}}, penalty{"penalty", {0, 1, 2}}, id_only{"id_only", {0, 1}};
  static constexpr std::array dimensions{dimension{"rows", {0, 1, 3, 17}},
                                         dimension{"vocabulary", {1, 5, 64, 257}},
                                         spread,
                                         temperature,
                                         top_k,
                                         top_p,
                                         min_p,
                                         penalty,
                                         id_only,
                                         gap,
                                         offset,
                                         special};
  template <class T>
  static auto arguments(bench<T>& b) {
    using S = compute_t<T>;
    const index n = b["rows"], vocabulary = b["vocabulary"];
    const matrix_view<const S> logits = detail::eighths(b, n, vocabulary);
    for (index i = 0; i < logits.size(); ++i) detail::same(logits).data[i] *= static_cast<S>(b[spread.name]);
    const index words = 2 * vocabulary;  // of all histories, which overlap
    const std::span<const token> histories = b.template numbers<token>(words, vocabulary);
    constexpr float temperatures[] = {1, 0.5, 2, 0}, penalties[] = {1, 2, 0.5};
    sampling_row* const rows = b.template take<sampling_row>(n);
    for (index i = 0; i < n; ++i) {
      sampling_row& row = rows[i];
      row.history = b.draw(words), row.history_size = b.draw(words - row.history + 1);
      row.id_only = b[id_only.name] > 0 && i % 2 == 0;
      row.rules.temperature = temperatures[(b[temperature.name] + (i % 5 == 4 ? i : 0)) % 4];
      row.rules.repetition_penalty = penalties[b[penalty.name]];
      row.rules.top_k = static_cast<int>(b[top_k.name]);
      const auto share = [&] { return static_cast<double>(2 * b.draw(1 << 20) + 1) / (1 << 21); };
      constexpr long double enough = 1e-9L;  // probabilities are off by 1e-13 at most: 4096 roundings of logits up to 100
      do {
        row.uniform = share();
        if (b[top_p.name] > 0) row.rules.top_p = static_cast<float>(share());
        if (b[min_p.name] > 0) row.rules.min_p = static_cast<float>(share() * share());
      } while (detail::sampling_margin(std::span(logits[i], static_cast<std::size_t>(vocabulary)), row, histories) < enough);
    }
    return std::tuple{logits, std::span<const sampling_row>(rows, static_cast<std::size_t>(n)), histories,
                      b.template take<token>(n), b.template take<double>(n)};
  }
};

}  // namespace parity
GYRE_END
