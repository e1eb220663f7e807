// Norms of the `cpu` backend.
#pragma once

#include <cmath>

#include <gyre/backend/cpu/simd_math.hpp>
#include <gyre/backend/cpu/split.hpp>

GYRE_BEGIN

namespace detail {

/// y = x * rstd * gain for one row; gain null: none.
template <class T>
void scale_row(const T* x, T rstd, const T* gain, T* y, index cols) {
  const simd<T> factor = simd<T>::broadcast(rstd);
  each_vector<T>(cols, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
    const simd<T> unit = factor * lanes.load(x + j);
    lanes.store(gain != nullptr ? unit * lanes.load(gain + j) : unit, y + j);
  });
}

template <class T>
T reciprocal_norm(simd<T> squares, index cols, double eps) {
  return T(1) / std::sqrt(sum(squares) / static_cast<T>(cols) + static_cast<T>(eps));
}

template <class T>
void rms_norm(thread_pool& pool, matrix_view<const T> x, const T* gain, double eps, matrix_view<T> y, T* rstd) {
  for_rows(pool, x.rows, x.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      const T* from = x[i];
      rstd[i] = reciprocal_norm(accumulate_vectors<T>(x.cols,
                                                      [&](index j, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA {
                                                        const simd<T> v = lanes.load(from + j);
                                                        return fma(v, v, s);
                                                      }),
                                x.cols, eps);
      scale_row(from, rstd[i], gain, y[i], x.cols);
    }
  });
}

template <class T>
void add_rms_norm(thread_pool& pool, matrix_view<const T> x, matrix_view<const T> f, const T* gain, double eps,
                  matrix_view<T> total, matrix_view<T> y, T* rstd) {
  for_rows(pool, x.rows, 2 * x.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      const T *a = x[i], *b = f[i];
      T* to = total[i];
      rstd[i] = reciprocal_norm(accumulate_vectors<T>(x.cols,
                                                      [&](index j, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA {
                                                        const simd<T> v = lanes.load(a + j) + lanes.load(b + j);
                                                        lanes.store(v, to + j);
                                                        return fma(v, v, s);
                                                      }),
                                x.cols, eps);
      scale_row<T>(to, rstd[i], gain, y[i], x.cols);
    }
  });
}

/// One row of the backward pass: dx += rstd (gain dy - unit mean(gain dy unit)), unit = x rstd; and dgain += dy unit. Gain and
/// dgain may be null.
template <class T>
void rms_norm_backward_row(const T* x, const T* gain, T rstd, const T* dy, T* dx, T* dgain, index cols) {
  const simd<T> r = simd<T>::broadcast(rstd);
  const simd<T> products = accumulate_vectors<T>(cols, [&](index j, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA {
    const simd<T> unit = r * lanes.load(x + j), d = lanes.load(dy + j);
    if (dgain != nullptr) lanes.store(fma(d, unit, lanes.load(dgain + j)), dgain + j);
    return fma(gain != nullptr ? d * lanes.load(gain + j) : d, unit, s);
  });
  const simd<T> mean = simd<T>::broadcast(-sum(products) / static_cast<T>(cols));
  each_vector<T>(cols, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
    const simd<T> unit = r * lanes.load(x + j), d = lanes.load(dy + j);
    lanes.store(fma(r, fma(mean, unit, gain != nullptr ? d * lanes.load(gain + j) : d), lanes.load(dx + j)), dx + j);
  });
}

template <class T>
void rms_norm_backward(thread_pool& pool, matrix_view<const T> x, const T* gain, const T* rstd, matrix_view<const T> dy,
                       matrix_view<T> dx, T* dgain, T* workspace) {
  const index cols = x.cols;
  for_rows(pool, partial_sums(x.rows), 2 * rows_per_sum * cols, [&](index first, index count) {
    for (index p = first; p < first + count; ++p) {
      T* total = nullptr;
      if (dgain != nullptr) {
        total = workspace + p * cols;
        for (index j = 0; j < cols; ++j) total[j] = T(0);
      }
      const index end = (std::min)(x.rows, (p + 1) * rows_per_sum);
      for (index i = p * rows_per_sum; i < end; ++i) rms_norm_backward_row(x[i], gain, rstd[i], dy[i], dx[i], total, cols);
    }
  });
  if (dgain != nullptr) add_partial_sums(pool, workspace, partial_sums(x.rows), cols, dgain);
}

/// change (rows, 2): the length of x - before, and that of x.
template <class T>
void row_change(thread_pool& pool, matrix_view<const T> x, matrix_view<const T> before, T* change) {
  for_rows(pool, x.rows, 2 * x.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      const T *a = x[i], *b = before[i];
      change[2 * i] = std::sqrt(sum(accumulate_vectors<T>(x.cols, [&](index j, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA {
        const simd<T> d = lanes.load(a + j) - lanes.load(b + j);
        return fma(d, d, s);
      })));
      change[2 * i + 1] = std::sqrt(sum(accumulate_vectors<T>(x.cols, [&](index j, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA {
        const simd<T> v = lanes.load(a + j);
        return fma(v, v, s);
      })));
    }
  });
}

template <class T>
void standardise(thread_pool& pool, matrix_view<T> y) {
  for_rows(pool, y.rows, 2 * y.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      T* row = y[i];
      const T n = static_cast<T>(y.cols);
      const simd<T> mean =
          simd<T>::broadcast(sum(accumulate_vectors<T>(y.cols, [&](index j, auto lanes, simd<T> s)
                                                                   GYRE_INLINE_LAMBDA { return s + lanes.load(row + j); })) /
                             n);
      each_vector<T>(y.cols, [&](index j, auto lanes) GYRE_INLINE_LAMBDA { lanes.store(lanes.load(row + j) - mean, row + j); });
      const T squares = sum(accumulate_vectors<T>(y.cols, [&](index j, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA {
        const simd<T> v = lanes.load(row + j);
        return fma(v, v, s);
      }));
      scale_row<T>(row, T(1) / std::sqrt(squares / n), nullptr, row, y.cols);
    }
  });
}

}  // namespace detail

GYRE_END
