// Pairs of a row and an expert on the `cpu` backend: sorted by expert, and rows on their way to experts and back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <gyre/backend/cpu/simd_math.hpp>
#include <gyre/backend/cpu/split.hpp>
#include <gyre/backend/cpu/widening.hpp>
#include <gyre/ops/routing.hpp>

GYRE_BEGIN

namespace detail {

/// A counting sort on the calling thread: its two passes read four bytes a pair, far less than any expert reads.
inline void group_pairs(const std::int32_t* chosen, index pairs, index experts, std::int32_t* offsets, std::int32_t* place,
                        std::int32_t* source) {
  check_pairs(pairs);
  std::fill_n(offsets, experts + 1, 0);
  for (index p = 0; p < pairs; ++p) {
    check_chosen(p, chosen[p], experts);
    ++offsets[chosen[p]];
  }
  std::int32_t begin = 0;
  for (index e = 0; e <= experts; ++e) {
    const std::int32_t count = offsets[e];
    offsets[e] = begin, begin += count;
  }
  for (index p = 0; p < pairs; ++p) {
    const std::int32_t row = offsets[chosen[p]]++;
    place[p] = row, source[row] = static_cast<std::int32_t>(p);
  }
  // Every offset is now where the next expert begins.
  for (index e = experts; e > 0; --e) offsets[e] = offsets[e - 1];
  offsets[0] = 0;
}

template <class T>
void spread(thread_pool& pool, matrix_view<const T> x, const std::int32_t* source, index active, matrix_view<T> y) {
  for_rows(pool, y.rows, y.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i)
      std::memcpy(y[i], x[source[i] / active], sizeof(T) * static_cast<std::size_t>(y.cols));
  });
}

template <class T>
void collect(thread_pool& pool, matrix_view<const T> y, const std::int32_t* place, const T* gates, index active,
             matrix_view<T> x) {
  for_rows(pool, x.rows, x.cols * (active + 1), [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      const std::int32_t* const at = place + i * active;
      const T* const gate = gates + (gates != nullptr ? i * active : 0);
      T* const to = x[i];
      each_vector<T>(x.cols, [&](index c, auto lanes) GYRE_INLINE_LAMBDA {
        simd<T> sum = simd<T>::zero();
        if (gates != nullptr)
          for (index j = 0; j < active; ++j) sum = fma(simd<T>::broadcast(gate[j]), lanes.load(y[at[j]] + c), sum);
        else
          for (index j = 0; j < active; ++j) sum = sum + lanes.load(y[at[j]] + c);
        lanes.store(lanes.load(to + c) + sum, to + c);
      });
    }
  });
}

template <class T>
void collect_backward(thread_pool& pool, matrix_view<const T> dx, matrix_view<const T> y, const std::int32_t* place,
                      const T* gates, index active, matrix_view<T> dy, T* d_gates) {
  for_rows(pool, dx.rows, 2 * dx.cols * active, [&](index first, index count) {
    for (index i = first; i < first + count; ++i)
      for (index p = i * active; p < (i + 1) * active; ++p) {
        const T* const from = dx[i];
        const T* const value = y[place[p]];
        T* const to = dy[place[p]];
        const simd<T> gate = simd<T>::broadcast(gates[p]);
        d_gates[p] += sum(accumulate_vectors<T>(dx.cols, [&](index c, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA {
          const simd<T> gradient = lanes.load(from + c), dot = fma(gradient, lanes.load(value + c), s);
          lanes.store(gate * gradient, to + c);
          return dot;
        }));
      }
  });
}

inline void collect(thread_pool& pool, matrix_view<const bfloat16> y, const std::int32_t* place, const float* gates,
                    index active, matrix_view<bfloat16> x) {
  float_copies copies(pool, y.size() + x.size());
  const matrix_view<float> to = copies.of(matrix_view<const bfloat16>(x));
  collect<float>(pool, copies.of(y), place, gates, active, to);
  store_rounded(pool, to, x);
}
inline void collect_backward(thread_pool& pool, matrix_view<const bfloat16> dx, matrix_view<const bfloat16> y,
                             const std::int32_t* place, const float* gates, index active, matrix_view<bfloat16> dy,
                             float* d_gates) {
  float_copies copies(pool, dx.size() + 2 * y.size());
  const matrix_view<float> to = copies.room(dy.rows, dy.cols);
  collect_backward<float>(pool, copies.of(dx), copies.of(y), place, gates, active, to, d_gates);
  store_rounded(pool, to, dy);
}

}  // namespace detail

GYRE_END
