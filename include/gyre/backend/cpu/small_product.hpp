// Products of small blocks on one thread, for use inside a task (attention). Any size works; they are meant for up to about
// 256 in each direction. As in product.hpp every element is one chain of multiply-adds in the order of the inner dimension.
#pragma once

#include <algorithm>
#include <cstddef>

#include <gyre/backend/cpu/packed.hpp>
#include <gyre/backend/cpu/product.hpp>
#include <gyre/backend/cpu/tile.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

namespace detail {

/// Scalars of scratch (aligned to 64 bytes) that each of the products below needs at most.
template <class T>
constexpr index small_product_scratch(index rows, index cols, index depth) {
  using shape = tile_shape<T>;
  (void)rows;
  return packed_matrix<T>::size(depth, cols) + shape::rows * depth;
}

/// C(m, n) (+)= alpha A(m, k) B(n, k)^T.
template <class T>
void small_product_nt(matrix_view<T> c, matrix_view<const T> a, matrix_view<const T> b, T alpha, bool accumulate, T* scratch) {
  constexpr index width = tile_shape<T>::cols;
  packed_matrix<T> packed(scratch, b.cols, b.rows);
  packed.pack_transposed(b, alpha);
  multiply_panels(c, a, packed.data(), width, width * b.cols, accumulate);
}

/// C(m, n) (+)= A(m, k) B(k, n).
template <class T>
void small_product_nn(matrix_view<T> c, matrix_view<const T> a, matrix_view<const T> b, bool accumulate, T* scratch) {
  constexpr index width = tile_shape<T>::cols;
  // Packing pays once several tiles read a panel. Few rows read B where it lies, but for a last panel that is not whole.
  const index direct = a.rows > 2 * tile_shape<T>::rows ? 0 : b.cols / width * width;
  if (direct > 0) multiply_panels(c.columns(0, direct), a, b.data, b.stride, width, accumulate);
  if (direct == b.cols) return;
  packed_matrix<T> packed(scratch, b.rows, b.cols - direct);
  packed.pack(b.columns(direct, b.cols - direct));
  multiply_panels(c.columns(direct, c.cols - direct), a, packed.data(), width, width * b.rows, accumulate);
}

/// C(m, n) (+)= A(k, m)^T B(k, n).
template <class T>
void small_product_tn(matrix_view<T> c, matrix_view<const T> a, matrix_view<const T> b, bool accumulate, T* scratch) {
  using shape = tile_shape<T>;
  constexpr index width = shape::cols, full = shape::rows, half = shape::low_rows;
  packed_matrix<T> packed(scratch, b.rows, b.cols);
  packed.pack(b);
  T* const strip = scratch + packed_matrix<T>::size(b.rows, b.cols);
  for (index row = 0, rows = 0; row < c.rows; row += rows) {
    rows = (std::min)(full, c.rows - row);
    const bool low = rows <= half;
    const index height = low ? half : full;
    const T* from = a.data + row;
    index step = a.stride;
    if (rows < height) {
      low ? pack_rows<half>(strip, a.rows, a.columns(row, rows), 0, a.rows)
          : pack_rows<full>(strip, a.rows, a.columns(row, rows), 0, a.rows);
      from = strip;
      step = height;
    }
    const tile_function<T> f = low ? tile<T, half, 1, tile_source::transposed> : tile<T, full, 1, tile_source::transposed>;
    for (index col = 0; col < c.cols; col += width)
      tile_edge<T>(f, height, width, rows, (std::min)(width, c.cols - col),
                   {a.rows, from, step, packed.data() + col * a.rows, width, 0, c[row] + col, c.stride, accumulate,
                    c[row] + col, packed.data() + col * a.rows});
  }
}

}  // namespace detail

GYRE_END
