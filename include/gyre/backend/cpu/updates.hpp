// Updates of parameters on the `cpu` backend: vectors cut into chunks of one size, whatever the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <gyre/backend/cpu/arctangent.hpp>
#include <gyre/backend/cpu/pool.hpp>
#include <gyre/backend/cpu/simd_math.hpp>
#include <gyre/core/types.hpp>
#include <gyre/ops/updates.hpp>

GYRE_BEGIN

namespace detail {

inline constexpr index update_chunk = 16384;  // scalars of one task

#if !defined(GYRE_SCALAR_KERNELS)
template <class T>
GYRE_INLINE simd<T> square_root(simd<T> x) {
  using native = typename simd<T>::native;
#if GYRE_SIMD_BYTES == 64
  // The masked forms: the plain ones read an undefined register, about which GCC 12 warns.
  if constexpr (sizeof(T) == 4)
    return {(native)_mm512_maskz_sqrt_ps(__mmask16(-1), (__m512)x.v)};
  else
    return {(native)_mm512_maskz_sqrt_pd(__mmask8(-1), (__m512d)x.v)};
#elif GYRE_SIMD_BYTES == 32
  if constexpr (sizeof(T) == 4)
    return {(native)_mm256_sqrt_ps((__m256)x.v)};
  else
    return {(native)_mm256_sqrt_pd((__m256d)x.v)};
#else
  native y;
  for (int i = 0; i < simd<T>::width; ++i) y[i] = std::sqrt(x.v[i]);
  return {y};
#endif
}
#else
template <class T>
simd<T> square_root(simd<T> x) {
  return simd<T>::map(x, x, [](T a, T) { return std::sqrt(a); });
}
#endif

/// Calls f(begin, end) for all chunks.
template <class F>
void for_chunks(thread_pool& pool, index count, F&& f) {
  pool.run((count + update_chunk - 1) / update_chunk,
           [&](index task, int) { f(task * update_chunk, (std::min)(count, (task + 1) * update_chunk)); });
}
/// The sum of f(begin, end) over all chunks, added in their order.
template <class F>
double sum_of_chunks(thread_pool& pool, index count, F&& f) {
  const index chunks = (count + update_chunk - 1) / update_chunk;
  thread_pool::exclusive all(pool);
  double* partial = all.scratch<double>(chunks);
  for_chunks(pool, count, [&](index begin, index end) { partial[begin / update_chunk] = f(begin, end); });
  double sum = 0;
  for (index i = 0; i < chunks; ++i) sum += partial[i];
  return sum;
}

/// Sum of f(i) for i in [begin, end): sixteen sums side by side, then one after the other.
template <class F>
double sum_of_lanes(index begin, index end, F&& f) {
  constexpr index width = 16;
  double lanes[width] = {};
  index i = begin;
  for (; i + width <= end; i += width)
    for (index j = 0; j < width; ++j) lanes[j] += f(i + j);
  for (index j = 0; i < end; ++i, ++j) lanes[j] += f(i);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

/// Gives backend `Self`, which has pool(), the operations of updating_backend.
template <class Self>
struct cpu_updates {
  template <class T>
  void squared_norm(const T* x, index count, double* squares) {
    squares[0] = sum_of_chunks(workers(), count, [=](index begin, index end) {
      return sum_of_lanes(begin, end, [=](index i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
    });
  }

  template <class T>
  void unit(const T* x, const double* squares, T* y, index count) {
    const double norm = std::sqrt(squares[0]);
    for_chunks(workers(), count, [=](index begin, index end) {
      for (index i = begin; i < end; ++i) y[i] = norm == 0 ? T(0) : static_cast<T>(static_cast<double>(x[i]) / norm);
    });
  }

  template <class T>
  void combine(std::type_identity_t<T> a, const T* x, std::type_identity_t<T> b, T* y, index count) {
    const simd<T> by_x = simd<T>::broadcast(a), by_y = simd<T>::broadcast(b);
    for_chunks(workers(), count, [=](index begin, index end) {
      const T* from = x + begin;
      T* to = y + begin;
      if (b == T(0))
        each_vector<T>(end - begin,
                       [=](index i, auto lanes) GYRE_INLINE_LAMBDA { lanes.store(by_x * lanes.load(from + i), to + i); });
      else
        each_vector<T>(end - begin, [=](index i, auto lanes) GYRE_INLINE_LAMBDA {
          lanes.store(fma(by_x, lanes.load(from + i), by_y * lanes.load(to + i)), to + i);
        });
    });
  }

  template <class T>
  void adamw_update(T* w, const T* g, T* m, T* v, index count, const adamw_numbers& numbers) {
    const moment_rule<T> moments{numbers.gradient_scale, numbers.beta1, numbers.beta2};
    const auto shrink = vector<T>(numbers.shrink), rate = vector<T>(numbers.rate), eps = vector<T>(numbers.eps),
               correction = vector<T>(1 / numbers.v_correction);
    for_chunks(workers(), count, [=](index begin, index end) {
      each_vector<T>(end - begin, [=](index i, auto lanes) GYRE_INLINE_LAMBDA {
        const index at = begin + i;
        const simd<T> gradient = lanes.load(g + at), weight = lanes.load(w + at);
        const simd<T> first = moments.first(gradient, lanes.load(m + at)),
                      second = moments.second(gradient, lanes.load(v + at));
        lanes.store(first, m + at);
        lanes.store(second, v + at);
        lanes.store(weight - fma(shrink, weight, rate * first / (square_root(second * correction) + eps)), w + at);
      });
    });
  }

  template <class T>
  void clipped_atan2_update(T* w, const T* g, T* m, T* v, index count, const clipped_atan2_numbers& numbers) {
    const moment_rule<T> moments{numbers.gradient_scale, numbers.beta1, numbers.beta2};
    const auto least = vector<T>(numbers.v_floor);
    const double scale = numbers.gradient_scale;
    const double sum = sum_of_chunks(workers(), count, [=](index begin, index end) {
      each_vector<T>(end - begin, [=](index i, auto lanes) GYRE_INLINE_LAMBDA {
        const index at = begin + i;
        const simd<T> gradient = lanes.load(g + at);
        lanes.store(moments.first(gradient, lanes.load(m + at)), m + at);
        lanes.store(maximum(least, moments.second(gradient, lanes.load(v + at))), v + at);  // in this order NaN stays NaN
      });
      return sum_of_lanes(begin, end, [=](index i) {
        const double gradient = scale * static_cast<double>(g[i]);
        return gradient * gradient / static_cast<double>(v[i]);
      });
    });
    const double root = std::sqrt(sum / static_cast<double>(count)), clip = root > 1 ? root : 1;  // NaN: 1
    const auto shrink = vector<T>(numbers.shrink), rate = vector<T>(numbers.rate / clip),
               correction = vector<T>(1 / numbers.v_correction);
    for_chunks(workers(), count, [=](index begin, index end) {
      each_vector<T>(end - begin, [=](index i, auto lanes) GYRE_INLINE_LAMBDA {
        const index at = begin + i;
        const simd<T> weight = lanes.load(w + at),
                      turned = angle(lanes.load(m + at), square_root(lanes.load(v + at) * correction));
        lanes.store(weight - fma(shrink, weight, rate * turned), w + at);
      });
    });
  }

 private:
  thread_pool& workers() { return static_cast<Self*>(this)->pool(); }

  template <class T>
  static simd<T> vector(double x) {
    return simd<T>::broadcast(static_cast<T>(x));
  }

  /// Moments of the scaled gradient, by the order of operations that both optimisers share.
  template <class T>
  struct moment_rule {
    simd<T> scale, keep1, take1, keep2, take2;
    moment_rule(double gradient_scale, double beta1, double beta2)
        : scale(vector<T>(gradient_scale)),
          keep1(vector<T>(beta1)),
          take1(vector<T>(1 - beta1)),
          keep2(vector<T>(beta2)),
          take2(vector<T>(1 - beta2)) {}
    GYRE_INLINE simd<T> first(simd<T> g, simd<T> m) const { return fma(keep1, m, take1 * (scale * g)); }
    GYRE_INLINE simd<T> second(simd<T> g, simd<T> v) const {
      const simd<T> scaled = scale * g;
      return fma(keep2, v, take2 * scaled * scaled);
    }
  };
};

}  // namespace detail

GYRE_END
