// What concerns the depths of a token on the `cpu` backend: one rotation for all rows, and attention over earlier steps, where
// every row is a sequence of its own, as long as there are steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include <gyre/backend/cpu/elementwise.hpp>
#include <gyre/backend/cpu/rotary.hpp>
#include <gyre/backend/cpu/simd_math.hpp>
#include <gyre/backend/cpu/split.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

template <class T>
void rotate(thread_pool& pool, matrix_view<T> x, const T* angles, rotary_shape shape, T sign) {
  for_rows(pool, x.rows, 2 * x.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      if (shape.pairs == pairing::adjacent)
        rotate_row_adjacent<T>(x[i], nullptr, angles, shape, sign);
      else
        rotate_row_half_split<T>(x[i], nullptr, angles, shape, sign);
    }
  });
}

/// One head of one row: a query and the keys and values of its slots.
template <class T>
struct depth_head {
  static constexpr index block = 4 * simd<T>::width;  // slots whose weights exist at once
  const T *q, *k, *v;                                 // k and v of slot 0; slots lie `stride` apart
  index k_stride, v_stride, slots, width;
  T scale;

  /// Softmax with a running maximum over blocks of slots; returns the log-sum-exp.
  T read(T* o) const {
    std::fill_n(o, width, T(0));
    if (slots == 0) return T(0);
    T top = -std::numeric_limits<T>::infinity(), total = 0;
    for (index first = 0; first < slots; first += block) {
      const index here = (std::min)(block, slots - first);
      T weights[std::size_t{block}];
      T now = top;
      for (index j = 0; j < here; ++j) {
        weights[j] = scale * dot_product(q, k + (first + j) * k_stride, width);
        now = weights[j] > now ? weights[j] : now;
      }
      for (index j = here; j < block; ++j) weights[j] = -std::numeric_limits<T>::infinity();
      const simd<T> shift = simd<T>::broadcast(now);
      simd<T> sums = simd<T>::zero();
      for (index j = 0; j < round_up_to_vector(here); j += simd<T>::width) {
        const simd<T> p = exp(simd<T>::load(weights + j) - shift);
        p.store(weights + j);
        sums = sums + p;
      }
      if (first > 0) {
        const T factor = exp(simd<T>::broadcast(top) - shift)[0];
        total *= factor;
        for (index c = 0; c < width; ++c) o[c] *= factor;
      }
      total += sum(sums);
      top = now;
      for (index j = 0; j < here; ++j) add_scaled(weights[j], v + (first + j) * v_stride, o, width);
    }
    const T factor = T(1) / total;
    for (index c = 0; c < width; ++c) o[c] *= factor;
    return std::log(total) + top;
  }

  /// dq is added to, as are the gradients of the slots' keys and values.
  void differentiate(const T* o, T lse, const T* d_o, T* dq, T* dk, index dk_stride, T* dv, index dv_stride) const {
    const T dot = dot_product(d_o, o, width);
    for (index j = 0; j < slots; ++j) {
      const T* const key = k + j * k_stride;
      const T score = scale * dot_product(q, key, width);
      const T above = score - lse > T(0) ? T(0) : score - lse;  // a weight is at most 1, however lse was rounded
      const T p = exp(simd<T>::broadcast(above))[0], ds = p * (dot_product(d_o, v + j * v_stride, width) - dot) * scale;
      add_scaled(ds, key, dq, width);
      add_scaled(ds, q, dk + j * dk_stride, width);
      add_scaled(p, d_o, dv + j * dv_stride, width);
    }
  }

 private:
  static constexpr index round_up_to_vector(index n) { return (n + simd<T>::width - 1) / simd<T>::width * simd<T>::width; }
};

template <class T>
depth_head<T> depth_head_of(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, attention_shape shape,
                            index row, index head) {
  const index column = head / (shape.heads / shape.kv_heads) * shape.width;
  return {q[row] + head * shape.width, k[row] + column, v[row] + column, k.stride * q.rows,
          v.stride * q.rows,           k.rows / q.rows, shape.width,     static_cast<T>(shape.scale)};
}

template <class T>
void depth_attention(thread_pool& pool, matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v,
                     attention_shape shape, matrix_view<T> o, T* lse) {
  if (k.rows == 0) {  // no slots, or no rows
    for (index i = 0; i < q.rows; ++i) std::fill_n(o[i], o.cols, T(0));
    std::fill_n(lse, q.rows * shape.heads, T(0));
    return;
  }
  for_rows(pool, q.rows, q.cols * (2 * (k.rows / q.rows) + 1), [&](index first, index count) {
    for (index i = first; i < first + count; ++i)
      for (index h = 0; h < shape.heads; ++h)
        lse[i * shape.heads + h] = depth_head_of<T>(q, k, v, shape, i, h).read(o[i] + h * shape.width);
  });
}

template <class T>
void depth_attention_backward(thread_pool& pool, matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v,
                              matrix_view<const T> o, const T* lse, matrix_view<const T> d_o, attention_shape shape,
                              matrix_view<T> dq, matrix_view<T> dk, matrix_view<T> dv) {
  if (k.rows == 0) {
    for (index i = 0; i < q.rows; ++i) std::fill_n(dq[i], dq.cols, T(0));
    return;
  }
  for_rows(pool, q.rows, q.cols * (6 * (k.rows / q.rows) + 1), [&](index first, index count) {
    for (index i = first; i < first + count; ++i)
      for (index h = 0; h < shape.heads; ++h) {
        const index at = h * shape.width, column = h / (shape.heads / shape.kv_heads) * shape.width;
        std::fill_n(dq[i] + at, shape.width, T(0));
        depth_head_of<T>(q, k, v, shape, i, h)
            .differentiate(o[i] + at, lse[i * shape.heads + h], d_o[i] + at, dq[i] + at, dk[i] + column, dk.stride * q.rows,
                           dv[i] + column, dv.stride * q.rows);
      }
  });
}

}  // namespace detail

GYRE_END
