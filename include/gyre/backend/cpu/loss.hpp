// Cross-entropy and sums of the `cpu` backend.
#pragma once

#include <cmath>
#include <span>

#include <gyre/backend/cpu/simd_math.hpp>
#include <gyre/backend/cpu/split.hpp>

GYRE_BEGIN

namespace detail {

/// The loss of one row; with `gradient` z becomes scale * (softmax - onehot).
template <class T>
T cross_entropy_row(T* z, index cols, index target, T scale, bool gradient) {
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  simd<T> tops = simd<T>::broadcast(lowest);
  each_vector<T>(cols, [&](index j, auto lanes) GYRE_INLINE_LAMBDA { tops = maximum(lanes.load_or(z + j, lowest), tops); });
  const T top = largest(tops), picked = z[target];
  const simd<T> shift = simd<T>::broadcast(top);
  const T total = sum(accumulate_vectors<T>(cols, [&](index j, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA {
    const simd<T> e = exp(lanes.load_or(z + j, lowest) - shift);
    if (gradient) lanes.store(e, z + j);
    return s + e;
  }));
  if (gradient) {
    const simd<T> factor = simd<T>::broadcast(scale / total);
    each_vector<T>(cols, [&](index j, auto lanes) GYRE_INLINE_LAMBDA { lanes.store(factor * lanes.load(z + j), z + j); });
    z[target] -= scale;
  }
  return std::log(total) + top - picked;
}

template <class T>
void cross_entropy(thread_pool& pool, matrix_view<T> logits, std::span<const token> targets, T scale, T* losses,
                   bool gradient) {
  for_rows(pool, logits.rows, 4 * logits.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      const token target = targets[static_cast<std::size_t>(i)];
      if (target >= 0) {
        losses[i] = cross_entropy_row(logits[i], logits.cols, target, scale, gradient);
      } else {
        losses[i] = T(0);
        if (gradient) std::fill_n(logits[i], logits.cols, T(0));
      }
    }
  });
}

/// In double, in the order of the elements.
template <class T>
T sum_in_order(const T* x, index count) {
  double total = 0;
  for (index i = 0; i < count; ++i) total += static_cast<double>(x[i]);
  return static_cast<T>(total);
}

}  // namespace detail

GYRE_END
