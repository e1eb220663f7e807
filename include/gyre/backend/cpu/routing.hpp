// Routing of the `cpu` backend: selection and gates of rows, their gradient, the losses of a router.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include <gyre/backend/cpu/pairs.hpp>
#include <gyre/backend/cpu/selection.hpp>
#include <gyre/backend/cpu/simd_math.hpp>
#include <gyre/backend/cpu/split.hpp>
#include <gyre/core/layout.hpp>
#include <gyre/ops/routing.hpp>

GYRE_BEGIN

namespace detail {

/// x without what lies behind a row.
template <class T>
GYRE_INLINE simd<T> only(whole_vector<T>, simd<T> x) {
  return x;
}
template <class T>
GYRE_INLINE simd<T> only(first_lanes<T> lanes, simd<T> x) {
  T values[simd<T>::width];
  x.store(values);
  return load_first(values, lanes.count);
}

/// sigmoid(x) / exp(shift), for shift = min(largest x, 0): at least 1/2 at the largest x, so that sums of it are never 0.
template <class T>
GYRE_INLINE simd<T> shifted_sigmoid(simd<T> x, simd<T> shift) {
  const simd<T> zero = simd<T>::zero(), one = simd<T>::broadcast(T(1));
  const simd<T> below = where_below(x, zero, x, zero), size = maximum(x, zero - x);
  return exp(below - shift) / (one + exp(zero - size));
}
/// 1 / (1 + exp(x)), the derivative of log sigmoid.
template <class T>
GYRE_INLINE simd<T> sigmoid_of_minus(simd<T> x) {
  return logistic(simd<T>::zero() - x);
}
/// The largest of x * scale.
template <class T>
T largest_of(const T* x, T scale, index count) {
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  simd<T> tops = simd<T>::broadcast(lowest);
  each_vector<T>(count, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
    // A row's last lanes repeat its first element: 0 might be above all.
    tops = maximum(simd<T>::broadcast(scale) * lanes.load_or(x + j, x[0]), tops);
  });
  return largest(tops);
}

/// Gates of rows from their kept logits. Functions of all pairs are computed together, sums in an order that depends on
/// `active` alone.
template <class T>
void write_gates(const T* logits, index rows, index experts, index active, T* gates) {
  if (experts == 1) return (void)std::fill_n(gates, rows, T(1));
  if (active == 1)
    return each_vector<T>(
        rows, [&](index j, auto lanes) GYRE_INLINE_LAMBDA { lanes.store(logistic(lanes.load(logits + j)), gates + j); });
  const bool short_rows = active <= simd<T>::width;
  for (index i = 0; i < rows; ++i) {  // gates hold the rows' shifts for now
    const T* const x = logits + i * active;
    T top = x[0];
    if (short_rows)
      for (index j = 1; j < active; ++j) top = x[j] > top ? x[j] : top;
    else
      top = largest_of(x, T(1), active);
    std::fill_n(gates + i * active, active, (std::min)(top, T(0)));
  }
  each_vector<T>(rows * active, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
    lanes.store(shifted_sigmoid(lanes.load(logits + j), lanes.load(gates + j)), gates + j);
  });
  for (index i = 0; i < rows; ++i) {
    T* const of_row = gates + i * active;
    T total = 0;
    if (short_rows)
      for (index j = 0; j < active; ++j) total += of_row[j];
    else
      total = sum(accumulate_vectors<T>(
          active, [&](index j, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA { return s + lanes.load(of_row + j); }));
    const T factor = T(1) / total;
    for (index j = 0; j < active; ++j) of_row[j] *= factor;
  }
}

template <class T>
void route(thread_pool& pool, matrix_view<const T> scores, const T* bias, double scale, index active, std::int32_t* chosen,
           T* logits, T* gates) {
  const index experts = scores.cols;
  check_active("route", active, experts);
  const T factor = static_cast<T>(scale);
  const index numbers = selection<T>::scratch(experts), step = (std::max)(index{1}, inline_work / (experts + 8 * active));
  pool.run((scores.rows + step - 1) / step, sizeof(T) * static_cast<std::size_t>(numbers), [&](index task, int worker) {
    const index first = task * step, count = (std::min)(step, scores.rows - first);
    selection<T> best(pool.scratch<T>(worker, numbers), experts);
    for (index i = first; i < first + count; ++i) {
      std::int32_t* const to = chosen + i * active;
      T* const kept = logits + i * active;
      if (active == experts)
        std::iota(to, to + active, 0);
      else
        best.choose({scores[i], bias, factor}, active, to);
      for (index j = 0; j < active; ++j) kept[j] = factor * scores[i][to[j]];
    }
    write_gates(logits + first * active, count, experts, active, gates + first * active);
  });
}

template <class T>
void route_backward(thread_pool& pool, const T* logits, const T* gates, const std::int32_t* chosen, const T* d_gates,
                    double scale, index active, matrix_view<T> d_scores) {
  const index experts = d_scores.cols;
  check_active("route_backward", active, experts);
  const simd<T> factor = simd<T>::broadcast(static_cast<T>(scale));
  for_rows(pool, d_scores.rows, experts + 8 * active, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      T* const to = d_scores[i];
      std::fill_n(to, experts, T(0));
      if (experts == 1) continue;
      const index begin = i * active;
      const T* const g = gates + begin;
      const T* const dg = d_gates + begin;
      const simd<T> mean = simd<T>::broadcast(
          active == 1 ? T(0) : sum(accumulate_vectors<T>(active, [&](index j, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA {
            return fma(lanes.load(g + j), lanes.load(dg + j), s);
          })));
      each_vector<T>(active, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
        const simd<T> d =
            factor * lanes.load(g + j) * (lanes.load(dg + j) - mean) * sigmoid_of_minus(lanes.load(logits + begin + j));
        T values[simd<T>::width];
        d.store(values);
        for (index lane = 0; lane < lanes.count; ++lane) to[chosen[begin + j + lane]] = values[lane];
      });
    }
  });
}

/// One row of scores as its losses see it.
template <class T>
struct router_row {
  const T *x, *share;  // scores; f_e of the row's sequence
  index experts;
  T scale;

  struct sums {
    T top, shift, sigmoids, shares,
        exponentials;  // largest logit; sums of sigmoid / exp(shift), of that times f, of exp(x - top)
    T mean_share() const { return shares / sigmoids; }
    T total() const { return std::log(exponentials) + top; }
  };
  template <class Lanes>
  GYRE_INLINE simd<T> logit(index j, Lanes lanes) const {
    return simd<T>::broadcast(scale) * lanes.load(x + j);
  }
  /// exp(logit - top), the difference rounded once.
  template <class Lanes>
  GYRE_INLINE simd<T> exponential(index j, Lanes lanes, simd<T> top) const {
    return exp(fma(simd<T>::broadcast(scale), lanes.load(x + j), simd<T>::zero() - top));
  }
  sums read() const {
    const T top = largest_of(x, scale, experts), shift = (std::min)(top, T(0));
    const simd<T> tops = simd<T>::broadcast(top), shifts = simd<T>::broadcast(shift);
    simd<T> sigmoids = simd<T>::zero(), shares = sigmoids, exponentials = sigmoids;
    each_vector<T>(experts, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
      const simd<T> weight = only(lanes, shifted_sigmoid(logit(j, lanes), shifts));
      sigmoids = sigmoids + weight;
      shares = fma(weight, lanes.load(share + j), shares);
      exponentials = exponentials + only(lanes, exponential(j, lanes, tops));
    });
    return {top, shift, sum(sigmoids), sum(shares), sum(exponentials)};
  }
  void add_gradient(router_loss_weights weights, T factor, T* to) const {
    const sums s = read();
    const simd<T> tops = simd<T>::broadcast(s.top), shifts = simd<T>::broadcast(s.shift),
                  mean = simd<T>::broadcast(s.mean_share()),
                  by_balance = simd<T>::broadcast(factor * scale * static_cast<T>(weights.balance) / s.sigmoids),
                  by_z = simd<T>::broadcast(factor * scale * 2 * static_cast<T>(weights.z) * s.total() / s.exponentials);
    each_vector<T>(experts, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
      const simd<T> x_e = logit(j, lanes);
      const simd<T> balance = by_balance * shifted_sigmoid(x_e, shifts) * (lanes.load(share + j) - mean);
      const simd<T> z = fma(by_z, exponential(j, lanes, tops), lanes.load(to + j));
      lanes.store(fma(balance, sigmoid_of_minus(x_e), z), to + j);
    });
  }
};

/// f(sequence number, span, shares) for every sequence of the layout, with scratch (shares first) for `more` scalars a token.
template <class T, class F>
void for_shares(thread_pool& pool, index experts, const std::int32_t* chosen, index active, const batch_layout& layout,
                index more, F f) {
  thread_pool::exclusive all(pool);
  index longest = 0, number = 0;
  for (const sequence_span& s : layout.sequences()) longest = (std::max)(longest, s.count);
  T* const share = all.scratch<T>(experts + more * longest);
  for (const sequence_span& s : layout.sequences()) {
    std::fill_n(share, experts, T(0));
    for (index p = s.begin * active; p < (s.begin + s.count) * active; ++p) share[chosen[p]] += T(1);
    const T unit = static_cast<T>(static_cast<double>(experts) / static_cast<double>(active * (std::max)(s.count, index{1})));
    for (index e = 0; e < experts; ++e) share[e] *= unit;
    f(number++, s, share);
  }
}

template <class T>
void router_loss(thread_pool& pool, matrix_view<const T> scores, double scale, const std::int32_t* chosen, index active,
                 const batch_layout& layout, router_loss_weights weights, T* losses) {
  check_active("router_loss", active, scores.cols);
  check_layout("router_loss", scores.rows, layout.rows());
  for_shares<T>(pool, scores.cols, chosen, active, layout, 1, [&](index number, const sequence_span& s, T* share) {
    T* const of_token = share + scores.cols;
    for_rows(pool, s.count, 8 * scores.cols, [&](index first, index count) {
      for (index i = first; i < first + count; ++i) {
        const auto sums = router_row<T>{scores[s.begin + i], share, scores.cols, static_cast<T>(scale)}.read();
        of_token[i] =
            static_cast<T>(weights.balance) * sums.mean_share() + static_cast<T>(weights.z) * sums.total() * sums.total();
      }
    });
    double total = 0;
    for (index i = 0; i < s.count; ++i) total += static_cast<double>(of_token[i]);
    losses[number] = static_cast<T>(total);
  });
}
template <class T>
void router_loss_backward(thread_pool& pool, matrix_view<const T> scores, double scale, const std::int32_t* chosen,
                          index active, const batch_layout& layout, router_loss_weights weights, T factor,
                          matrix_view<T> d_scores) {
  check_active("router_loss_backward", active, scores.cols);
  check_layout("router_loss_backward", scores.rows, layout.rows());
  for_shares<T>(pool, scores.cols, chosen, active, layout, 0, [&](index, const sequence_span& s, const T* share) {
    for_rows(pool, s.count, 16 * scores.cols, [&](index first, index count) {
      for (index i = s.begin + first; i < s.begin + first + count; ++i)
        router_row<T>{scores[i], share, scores.cols, static_cast<T>(scale)}.add_gradient(weights, factor, d_scores[i]);
    });
  });
}

/// Gives backend `Self`, which has pool(), the operations on routes and pairs.
template <class Self>
struct cpu_routing {
  template <class T>
  void route(matrix_view<const T> scores, const std::type_identity_t<T>* bias, double scale, index active, std::int32_t* chosen,
             T* logits, T* gates) {
    detail::route(routers(), scores, bias, scale, active, chosen, logits, gates);
  }
  template <class T>
  void route_backward(const T* logits, const T* gates, const std::int32_t* chosen, const T* d_gates, double scale, index active,
                      matrix_view<T> d_scores) {
    detail::route_backward(routers(), logits, gates, chosen, d_gates, scale, active, d_scores);
  }
  void group_pairs(const std::int32_t* chosen, index pairs, index experts, std::int32_t* offsets, std::int32_t* place,
                   std::int32_t* source) {
    detail::group_pairs(chosen, pairs, experts, offsets, place, source);
  }
  template <class T>
  void spread(matrix_view<const T> x, const std::int32_t* source, index active, matrix_view<T> y) {
    detail::spread(routers(), x, source, active, y);
  }
  template <class T>
  void collect(matrix_view<const T> y, const std::int32_t* place, const std::type_identity_t<compute_t<T>>* gates, index active,
               matrix_view<T> x) {
    detail::collect(routers(), y, place, gates, active, x);
  }
  template <class T, class S>
  void collect_backward(matrix_view<const T> dx, matrix_view<const T> y, const std::int32_t* place, const S* gates,
                        index active, matrix_view<T> dy, S* d_gates) {
    detail::collect_backward(routers(), dx, y, place, gates, active, dy, d_gates);
  }
  template <class T>
  void router_loss(matrix_view<const T> scores, double scale, const std::int32_t* chosen, index active,
                   const batch_layout& layout, router_loss_weights weights, T* losses) {
    detail::router_loss(routers(), scores, scale, chosen, active, layout, weights, losses);
  }
  template <class T>
  void router_loss_backward(matrix_view<const T> scores, double scale, const std::int32_t* chosen, index active,
                            const batch_layout& layout, router_loss_weights weights, std::type_identity_t<T> factor,
                            matrix_view<T> d_scores) {
    detail::router_loss_backward(routers(), scores, scale, chosen, active, layout, weights, factor, d_scores);
  }

 private:
  thread_pool& routers() { return static_cast<Self&>(*this).pool(); }
};

}  // namespace detail

GYRE_END
