// Reference of routing: which experts a row goes to, with which gates, and how rows travel there and back.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <gyre/backend/reference/elementwise.hpp>
#include <gyre/core/layout.hpp>
#include <gyre/ops/routing.hpp>

GYRE_BEGIN

namespace detail {

/// log(1 / (1 + exp(-x))) without overflow.
template <class S>
S reference_log_sigmoid(S x) {
  using std::exp, std::log;
  const bool positive = real_part(x) >= 0;
  const S tail = exp(positive ? -x : x);  // at most 1
  if constexpr (std::is_same_v<S, real_t<S>>)
    return (positive ? S(0) : x) - std::log1p(tail);
  else
    return (positive ? S(0) : x) - log(S(1) + tail);
}
/// The derivative of log sigmoid: 1 / (1 + exp(x)).
template <class S>
S reference_sigmoid_of_minus(S x) {
  using std::exp;
  if (real_part(x) < 0) return S(1) / (S(1) + exp(x));
  const S tail = exp(-x);
  return tail / (S(1) + tail);
}
/// Turns x into exp(x) / sum exp(x); returns log sum exp(x).
template <class S>
S reference_softmax(S* x, index count) {
  using std::exp, std::log;
  real_t<S> top = real_part(x[0]);
  for (index e = 1; e < count; ++e) top = (std::max)(top, real_part(x[e]));
  S sum(0);
  for (index e = 0; e < count; ++e) sum += exp(x[e] - S(top));
  const S rest = log(sum);
  for (index e = 0; e < count; ++e) x[e] = exp(x[e] - S(top) - rest);  // top + rest would lose rest beside a large top
  return S(top) + rest;
}

struct reference_routing {
  template <class T, class S>
  void route(matrix_view<const T> scores, const std::type_identity_t<T>* bias, double scale, index active, std::int32_t* chosen,
             S* logits, S* gates) {
    const index experts = scores.cols;
    check_active("route", active, experts);
    using std::exp;
    using real = real_t<S>;
    std::vector<real> order(static_cast<std::size_t>(experts));
    std::vector<bool> taken(static_cast<std::size_t>(experts));
    for (index i = 0; i < scores.rows; ++i, chosen += active, logits += active, gates += active) {
      for (index e = 0; e < experts; ++e) {
        const real x = real_part(S(static_cast<real>(scale)) * S(scores[i][e]));
        const real score = bias != nullptr ? x + static_cast<real>(real_part(bias[e])) : x;
        order[static_cast<std::size_t>(e)] = score == score ? score : -std::numeric_limits<real>::infinity();
      }
      std::fill(taken.begin(), taken.end(), false);
      for (index j = 0; j < active; ++j) {
        std::size_t best = order.size();
        for (std::size_t e = 0; e < order.size(); ++e)
          if (!taken[e] && (best == order.size() || order[e] > order[best])) best = e;
        taken[best] = true;
      }
      index slot = 0;
      for (index e = 0; e < experts; ++e)
        if (taken[static_cast<std::size_t>(e)]) {
          chosen[slot] = static_cast<std::int32_t>(e);
          logits[slot] = S(static_cast<real>(scale)) * S(scores[i][e]);
          gates[slot] = reference_log_sigmoid(logits[slot]);
          ++slot;
        }
      if (experts == 1)
        gates[0] = S(1);
      else if (active == 1)
        gates[0] = exp(gates[0]);
      else
        reference_softmax(gates, active);
    }
  }

  template <class T, class S>
  void route_backward(const S* logits, const S* gates, const std::int32_t* chosen, const S* d_gates, double scale, index active,
                      matrix_view<T> d_scores) {
    const index experts = d_scores.cols;
    check_active("route_backward", active, experts);
    for (index i = 0; i < d_scores.rows; ++i) {
      for (index e = 0; e < experts; ++e) d_scores[i][e] = T(0);
      if (experts == 1) continue;
      S dot(0);
      if (active > 1)
        for (index p = i * active; p < (i + 1) * active; ++p) dot += gates[p] * d_gates[p];
      for (index p = i * active; p < (i + 1) * active; ++p)
        d_scores[i][chosen[p]] =
            T(S(static_cast<real_t<S>>(scale)) * gates[p] * (d_gates[p] - dot) * reference_sigmoid_of_minus(logits[p]));
    }
  }

  void group_pairs(const std::int32_t* chosen, index pairs, index experts, std::int32_t* offsets, std::int32_t* place,
                   std::int32_t* source) {
    check_pairs(pairs);
    std::fill_n(offsets, experts + 1, 0);
    std::int32_t row = 0;
    for (index e = 0; e < experts; ++e) {
      for (index p = 0; p < pairs; ++p)
        if (chosen[p] == e) {
          source[row] = static_cast<std::int32_t>(p);
          place[p] = row++;
        }
      offsets[e + 1] = row;
    }
    for (index p = 0; p < pairs; ++p) check_chosen(p, chosen[p], experts);
  }

  template <class T>
  void spread(matrix_view<const T> x, const std::int32_t* source, index active, matrix_view<T> y) {
    for (index i = 0; i < y.rows; ++i)
      for (index c = 0; c < y.cols; ++c) y[i][c] = x[source[i] / active][c];
  }
  template <class T, class S>
  void collect(matrix_view<const T> y, const std::int32_t* place, const S* gates, index active, matrix_view<T> x) {
    for (index i = 0; i < x.rows; ++i)
      for (index c = 0; c < x.cols; ++c) {
        S sum(0);
        for (index p = i * active; p < (i + 1) * active; ++p) sum += (gates != nullptr ? gates[p] : S(1)) * S(y[place[p]][c]);
        add_rounded(x[i][c], compute_t<T>(sum));
      }
  }
  template <class T, class S>
  void collect_backward(matrix_view<const T> dx, matrix_view<const T> y, const std::int32_t* place, const S* gates,
                        index active, matrix_view<T> dy, S* d_gates) {
    for (index i = 0; i < dx.rows; ++i)
      for (index p = i * active; p < (i + 1) * active; ++p) {
        S dot(0);
        for (index c = 0; c < dx.cols; ++c) {
          dot += S(dx[i][c]) * S(y[place[p]][c]);
          dy[place[p]][c] = T(gates[p] * S(dx[i][c]));
        }
        d_gates[p] += dot;
      }
  }

  template <class T, class S>
  void router_loss(matrix_view<const T> scores, double scale, const std::int32_t* chosen, index active,
                   const batch_layout& layout, router_loss_weights weights, S* losses) {
    check_active("router_loss", active, scores.cols);
    check_layout("router_loss", scores.rows, layout.rows());
    for (const sequence_span& s : layout.sequences()) {
      const std::vector<real_t<S>> share = shares<real_t<S>>(chosen, active, s, scores.cols);
      S loss(0);
      for (index i = s.begin; i < s.begin + s.count; ++i) {
        router_row<S> row(scores, i, scale);
        for (std::size_t e = 0; e < share.size(); ++e)
          loss += static_cast<real_t<S>>(weights.balance) * share[e] * row.probability[e];
        loss += static_cast<real_t<S>>(weights.z) * row.total * row.total;
      }
      *losses++ = loss;
    }
  }
  template <class T, class S>
  void router_loss_backward(matrix_view<const T> scores, double scale, const std::int32_t* chosen, index active,
                            const batch_layout& layout, router_loss_weights weights, S factor, matrix_view<T> d_scores) {
    check_active("router_loss_backward", active, scores.cols);
    check_layout("router_loss_backward", scores.rows, layout.rows());
    using real = real_t<S>;
    for (const sequence_span& s : layout.sequences()) {
      const std::vector<real> share = shares<real>(chosen, active, s, scores.cols);
      for (index i = s.begin; i < s.begin + s.count; ++i) {
        router_row<S> row(scores, i, scale);
        S mean(0);
        for (std::size_t e = 0; e < share.size(); ++e) mean += share[e] * row.probability[e];
        for (index e = 0; e < scores.cols; ++e) {
          const auto at = static_cast<std::size_t>(e);
          const S d_log_sigmoid = static_cast<real>(weights.balance) * row.probability[at] * (share[at] - mean);
          const S dx = d_log_sigmoid * reference_sigmoid_of_minus(row.logit[at]) +
                       real(2) * static_cast<real>(weights.z) * row.total * row.softmax[at];
          add_rounded(d_scores[i][e], compute_t<T>(factor * static_cast<real>(scale) * dx));
        }
      }
    }
  }

 private:
  /// f_e of a sequence: E / (k tokens) times the number of its rows that chose e.
  template <class R>
  static std::vector<R> shares(const std::int32_t* chosen, index active, const sequence_span& s, index experts) {
    std::vector<R> share(static_cast<std::size_t>(experts));
    for (index p = s.begin * active; p < (s.begin + s.count) * active; ++p) share[static_cast<std::size_t>(chosen[p])] += R(1);
    for (R& f : share) f *= static_cast<R>(experts) / static_cast<R>(active * (std::max)(s.count, index{1}));
    return share;
  }
  template <class S>
  struct router_row {
    std::vector<S> logit, probability, softmax;  // probability: sigmoid(x) / sum of sigmoid(x)
    S total;                                     // log sum exp of the logits
    template <class T>
    router_row(matrix_view<const T> scores, index i, double scale) {
      for (index e = 0; e < scores.cols; ++e) {
        logit.push_back(S(static_cast<real_t<S>>(scale)) * S(scores[i][e]));
        probability.push_back(reference_log_sigmoid(logit.back()));
      }
      softmax = logit;
      reference_softmax(probability.data(), scores.cols);
      total = reference_softmax(softmax.data(), scores.cols);
    }
  };
};

}  // namespace detail

GYRE_END
