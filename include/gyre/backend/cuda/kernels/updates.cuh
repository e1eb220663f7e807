// Updates of parameters: one pass over the flat vectors, a pack of each for a thread. Bytes floor: every vector that is read or
// written, once.
#pragma once

#include <gyre/backend/cuda/kernels/packs.cuh>
#include <gyre/ops/updates.hpp>

GYRE_BEGIN

namespace detail {

inline constexpr unsigned update_threads = 256;

/// Calls body(at, left) for the packs of vectors of `count` scalars T: `at` is the pack's first, `left` how many there are from
/// it on.
template <bool Wide, class T, class Body>
GYRE_KERNEL void __launch_bounds__(update_threads) for_each_pack(index count, Body body) {
  const index at = thread_number() * pack_width<T>;
  body.template operator()<Wide>(at, count - at);
}

template <class T>
struct combine_pack {
  T a;
  const T* x;
  T b;
  T* y;
  template <bool Wide>
  GYRE_DEVICE void operator()(index at, index left) const {
    const compute_t<T> by_x = widen(a), by_y = widen(b);
    compute_t<T> from[pack_width<T>], to[pack_width<T>];
    load_lanes<Wide>(x + at, left, from);
    if (by_y == compute_t<T>(0)) {  // y may hold anything
      GYRE_UNROLL for (int j = 0; j < pack_width<T>; ++j) to[j] = by_x * from[j];
    } else {
      load_lanes<Wide>(y + at, left, to);
      GYRE_UNROLL for (int j = 0; j < pack_width<T>; ++j) to[j] = by_x * from[j] + by_y * to[j];
    }
    store_lanes<Wide>(to, left, y + at);
  }
};

/// x / sqrt(squares[0]), 0 where squares[0] is.
template <class T>
struct unit_pack {
  const T* x;
  const double* squares;
  T* y;
  template <bool Wide>
  GYRE_DEVICE void operator()(index at, index left) const {
    const double norm = std::sqrt(squares[0]);
    compute_t<T> value[pack_width<T>];
    load_lanes<Wide>(x + at, left, value);
    GYRE_UNROLL for (compute_t<T>& each : value) each =
        norm == 0 ? compute_t<T>(0) : static_cast<compute_t<T>>(static_cast<double>(each) / norm);
    store_lanes<Wide>(value, left, y + at);
  }
};

/// Moments of the scaled gradient, which both optimisers share.
template <class C>
struct moment_rule {
  C scale, keep1, take1, keep2, take2;
  moment_rule(double gradient_scale, double beta1, double beta2)
      : scale(static_cast<C>(gradient_scale)),
        keep1(static_cast<C>(beta1)),
        take1(static_cast<C>(1 - beta1)),
        keep2(static_cast<C>(beta2)),
        take2(static_cast<C>(1 - beta2)) {}
  GYRE_DEVICE C first(C gradient, C m) const { return keep1 * m + take1 * gradient; }
  GYRE_DEVICE C second(C gradient, C v) const { return keep2 * v + take2 * gradient * gradient; }
};

template <class T>
struct adamw_pack {
  using C = compute_t<T>;
  T* w;
  const T* g;
  T *m, *v;
  moment_rule<C> moments;
  C eps, shrink, rate, correction;
  adamw_pack(T* w_, const T* g_, T* m_, T* v_, const adamw_numbers& n)
      : w(w_),
        g(g_),
        m(m_),
        v(v_),
        moments(n.gradient_scale, n.beta1, n.beta2),
        eps(static_cast<C>(n.eps)),
        shrink(static_cast<C>(n.shrink)),
        rate(static_cast<C>(n.rate)),
        correction(static_cast<C>(1 / n.v_correction)) {}
  template <bool Wide>
  GYRE_DEVICE void operator()(index at, index left) const {
    C gradient[pack_width<T>], first[pack_width<T>], second[pack_width<T>], weight[pack_width<T>];
    load_lanes<Wide>(g + at, left, gradient);
    load_lanes<Wide>(m + at, left, first);
    load_lanes<Wide>(v + at, left, second);
    load_lanes<Wide>(w + at, left, weight);
    GYRE_UNROLL for (int j = 0; j < pack_width<T>; ++j) {
      const C scaled = moments.scale * gradient[j];
      first[j] = moments.first(scaled, first[j]);
      second[j] = moments.second(scaled, second[j]);
      weight[j] -= shrink * weight[j] + rate * first[j] / (std::sqrt(second[j] * correction) + eps);
    }
    store_lanes<Wide>(first, left, m + at);
    store_lanes<Wide>(second, left, v + at);
    store_lanes<Wide>(weight, left, w + at);
  }
};

/// A term of a sum (sums.cuh): updates the moments, and gives g^2 / v.
template <class T>
struct clipped_moments_term {
  using C = compute_t<T>;
  const T* g;
  T *m, *v;
  moment_rule<C> moments;
  C floor;
  clipped_moments_term(const T* g_, T* m_, T* v_, const clipped_atan2_numbers& n)
      : g(g_), m(m_), v(v_), moments(n.gradient_scale, n.beta1, n.beta2), floor(static_cast<C>(n.v_floor)) {}
  template <bool Wide>
  GYRE_DEVICE double operator()(index at, index left) const {
    C gradient[pack_width<T>], first[pack_width<T>], second[pack_width<T>];
    load_lanes<Wide>(g + at, left, gradient);
    load_lanes<Wide>(m + at, left, first);
    load_lanes<Wide>(v + at, left, second);
    double sum = 0;
    GYRE_UNROLL for (int j = 0; j < pack_width<T>; ++j) {
      const C scaled = moments.scale * gradient[j];
      first[j] = moments.first(scaled, first[j]);
      second[j] = moments.second(scaled, second[j]);
      if (second[j] < floor) second[j] = floor;  // NaN stays NaN
      if (j < left) sum += static_cast<double>(scaled) * static_cast<double>(scaled) / static_cast<double>(second[j]);
    }
    store_lanes<Wide>(first, left, m + at);
    store_lanes<Wide>(second, left, v + at);
    return sum;
  }
};

/// The end of the sum of g^2 / v: the rate, clipped by the root of their mean.
struct clipped_rate {
  double rate, count;
  GYRE_DEVICE double operator()(double sum) const {
    const double root = std::sqrt(sum / count);
    return root > 1 ? rate / root : rate;  // NaN: not clipped
  }
};

template <class T>
struct atan2_pack {
  using C = compute_t<T>;
  T* w;
  const T *m, *v;
  const double* clipped;  // rate
  C shrink, correction;
  atan2_pack(T* w_, const T* m_, const T* v_, const double* clipped_, const clipped_atan2_numbers& n)
      : w(w_),
        m(m_),
        v(v_),
        clipped(clipped_),
        shrink(static_cast<C>(n.shrink)),
        correction(static_cast<C>(1 / n.v_correction)) {}
  template <bool Wide>
  GYRE_DEVICE void operator()(index at, index left) const {
    const C rate = static_cast<C>(clipped[0]);
    C first[pack_width<T>], second[pack_width<T>], weight[pack_width<T>];
    load_lanes<Wide>(m + at, left, first);
    load_lanes<Wide>(v + at, left, second);
    load_lanes<Wide>(w + at, left, weight);
    GYRE_UNROLL for (int j = 0; j < pack_width<T>; ++j) weight[j] -=
        shrink * weight[j] + rate * std::atan2(first[j], std::sqrt(second[j] * correction));
    store_lanes<Wide>(weight, left, w + at);
  }
};

}  // namespace detail

GYRE_END
