// Copies, sums, the embedding and the gate of the `cpu` backend.
#pragma once

#include <cstring>
#include <span>

#include <gyre/backend/cpu/simd_math.hpp>
#include <gyre/backend/cpu/split.hpp>

GYRE_BEGIN

namespace detail {

/// f(row, first, count): parts of rows that together are everything. Where `one_piece`, the rows follow each other without gaps
/// and are treated as few long ones.
template <class F>
void for_spans(thread_pool& pool, index rows, index cols, bool one_piece, F f) {
  if (one_piece) {
    constexpr index step = 1024;
    const index size = rows * cols;
    for_rows(pool, (size + step - 1) / step, step,
             [&](index first, index count) { f(index{0}, first * step, (std::min)(count * step, size - first * step)); });
  } else {
    for_rows(pool, rows, cols, [&](index first, index count) {
      for (index i = first; i < first + count; ++i) f(i, index{0}, cols);
    });
  }
}

template <class T>
void fill(thread_pool& pool, matrix_view<T> y, T value) {
  for_spans(pool, y.rows, y.cols, y.contiguous(), [&](index i, index first, index count) {
    T* to = y[i] + first;
    each_vector<T>(count, [&](index j, auto lanes) GYRE_INLINE_LAMBDA { lanes.store(simd<T>::broadcast(value), to + j); });
  });
}

template <class T>
void copy(thread_pool& pool, matrix_view<const T> x, matrix_view<T> y) {
  for_spans(pool, y.rows, y.cols, x.contiguous() && y.contiguous(), [&](index i, index first, index count) {
    std::memcpy(y[i] + first, x[i] + first, sizeof(T) * static_cast<std::size_t>(count));
  });
}

template <class T>
void add(thread_pool& pool, matrix_view<const T> x, matrix_view<T> y) {
  for_spans(pool, y.rows, y.cols, x.contiguous() && y.contiguous(), [&](index i, index first, index count) {
    const T* from = x[i] + first;
    T* to = y[i] + first;
    each_vector<T>(
        count, [&](index j, auto lanes) GYRE_INLINE_LAMBDA { lanes.store(lanes.load(to + j) + lanes.load(from + j), to + j); });
  });
}

template <class T>
T dot_product(const T* a, const T* b, index n) {
  return sum(accumulate_vectors<T>(
      n, [&](index c, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA { return fma(lanes.load(a + c), lanes.load(b + c), s); }));
}
/// y += a x.
template <class T>
void add_scaled(T a, const T* x, T* y, index n) {
  const simd<T> factor = simd<T>::broadcast(a);
  each_vector<T>(n, [&](index c, auto lanes)
                        GYRE_INLINE_LAMBDA { lanes.store(fma(factor, lanes.load(x + c), lanes.load(y + c)), y + c); });
}

template <class T>
void add_scaled(thread_pool& pool, matrix_view<const T> x, T factor, matrix_view<T> y) {
  for_spans(pool, y.rows, y.cols, x.contiguous() && y.contiguous(),
            [&](index i, index first, index count) { add_scaled(factor, x[i] + first, y[i] + first, count); });
}
/// dots[i] = x[i] . y[i]
template <class T>
void row_dot_products(thread_pool& pool, matrix_view<const T> x, matrix_view<const T> y, T* dots) {
  for_rows(pool, x.rows, x.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) dots[i] = dot_product(x[i], y[i], x.cols);
  });
}

template <class T>
void gather(thread_pool& pool, matrix_view<const T> x, std::span<const index> from, matrix_view<T> y) {
  for_rows(pool, y.rows, y.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i)
      std::memcpy(y[i], x[from[static_cast<std::size_t>(i)]], sizeof(T) * static_cast<std::size_t>(y.cols));
  });
}

template <class T>
void embed(thread_pool& pool, matrix_view<const T> table, std::span<const token> ids, double scale, matrix_view<T> y) {
  const simd<T> factor = simd<T>::broadcast(static_cast<T>(scale));
  for_rows(pool, y.rows, y.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      const T* from = table[ids[static_cast<std::size_t>(i)]];
      T* to = y[i];
      each_vector<T>(y.cols,
                     [&](index j, auto lanes) GYRE_INLINE_LAMBDA { lanes.store(factor * lanes.load(from + j), to + j); });
    }
  });
}

/// Several rows may add to one row of the table: each task has some columns of all rows.
template <class T>
void embed_backward(thread_pool& pool, matrix_view<const T> dy, std::span<const token> ids, double scale,
                    matrix_view<T> dtable) {
  constexpr index step = 64 / static_cast<index>(sizeof(T)) * 2;  // two cache lines of a row
  const simd<T> factor = simd<T>::broadcast(static_cast<T>(scale));
  for_rows(pool, (dy.cols + step - 1) / step, dy.rows * step, [&](index block, index blocks) {
    const index first = block * step, count = (std::min)(blocks * step, dy.cols - first);
    for (index i = 0; i < dy.rows; ++i) {
      const T* from = dy[i] + first;
      T* to = dtable[ids[static_cast<std::size_t>(i)]] + first;
      each_vector<T>(count, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
        lanes.store(fma(factor, lanes.load(from + j), lanes.load(to + j)), to + j);
      });
    }
  });
}

template <class T>
void column_sum(thread_pool& pool, matrix_view<const T> x, T* sum, T* workspace) {
  for_rows(pool, partial_sums(x.rows), rows_per_sum * x.cols, [&](index first, index count) {
    for (index p = first; p < first + count; ++p) {
      T* total = workspace + p * x.cols;
      const index begin = p * rows_per_sum, end = (std::min)(x.rows, begin + rows_per_sum);
      std::memcpy(total, x[begin], sizeof(T) * static_cast<std::size_t>(x.cols));
      for (index i = begin + 1; i < end; ++i) {
        const T* from = x[i];
        each_vector<T>(x.cols, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
          lanes.store(lanes.load(total + j) + lanes.load(from + j), total + j);
        });
      }
    }
  });
  add_partial_sums(pool, workspace, partial_sums(x.rows), x.cols, sum);
}

/// An exponential and a division take as long as this many elements that are copied.
inline constexpr index gate_cost = 4;

template <class T>
void gated_silu(thread_pool& pool, matrix_view<const T> h, matrix_view<T> a) {
  for_rows(pool, a.rows, gate_cost * a.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      const T *gate = h[i], *up = h[i] + a.cols;
      T* to = a[i];
      each_vector<T>(a.cols, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
        const simd<T> g = lanes.load(gate + j);
        lanes.store(g * logistic(g) * lanes.load(up + j), to + j);
      });
    }
  });
}

template <class T>
void gated_silu_backward(thread_pool& pool, matrix_view<const T> h, matrix_view<const T> da, matrix_view<T> dh) {
  for_rows(pool, da.rows, 2 * gate_cost * da.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      const T *gate = h[i], *up = h[i] + da.cols, *from = da[i];
      T *d_gate = dh[i], *d_up = dh[i] + da.cols;
      each_vector<T>(da.cols, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
        const simd<T> one = simd<T>::broadcast(T(1)), g = lanes.load(gate + j), sigma = logistic(g), d = lanes.load(from + j);
        const simd<T> silu = g * sigma;
        lanes.store(d * lanes.load(up + j) * fma(silu, one - sigma, sigma), d_gate + j);
        lanes.store(d * silu, d_up + j);
      });
    }
  });
}

}  // namespace detail

GYRE_END
