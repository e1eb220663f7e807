// Matrix products of the `cpu` backend. Every element of a result is one chain of multiply-adds in the order of the inner
// dimension, whatever the number of threads, of rows, or the blocking: a row computed alone has the bits it has among thousands.
#pragma once

#include <algorithm>
#include <cstddef>

#include <gyre/backend/cpu/packed.hpp>
#include <gyre/backend/cpu/pool.hpp>
#include <gyre/backend/cpu/tile.hpp>
#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

namespace detail {

/// Steps of the inner dimension between two visits to the result: few enough that a panel of B and a strip of A stay in the
/// first-level cache. Equal parts, multiples of the group.
template <class T>
constexpr index depth_block(index depth) {
  constexpr index most = 1536 / static_cast<index>(sizeof(T)), group = tile_shape<T>::group;
  const index parts = (std::max)(index{1}, divide_up(depth, most));
  return (std::max)(group, divide_up(divide_up(depth, parts), group) * group);
}

/// Scalars of scratch that multiply_rows needs for `rows` rows.
template <class T>
constexpr index multiply_rows_scratch(index rows, index depth) {
  return rows / tile_shape<T>::rows * tile_shape<T>::rows * depth_block<T>(depth);
}

/// C(rows, ...) (+)= A(rows, depth) B, for the panels [first, last) of B; c spans all columns of B. One thread.
template <class T>
void multiply_rows(matrix_view<T> c, matrix_view<const T> a, const packed_matrix<T>& b, index first, index last,
                   bool accumulate, T* scratch) {
  using shape = tile_shape<T>;
  using direct = direct_tiles<T>;
  const index full = a.rows <= 2 * direct::most ? 0 : a.rows / shape::rows;  // strips of full height, packed
  const index rest = a.rows - full * shape::rows;
  const index parts = divide_up(rest, index{direct::most});
  const index step = depth_block<T>(a.cols), panel_size = shape::cols * a.cols;
  for (index k = 0; k < a.cols || k == 0; k += step) {
    const index depth = (std::min)(step, a.cols - k);
    const bool load = accumulate || k > 0;
    for (index s = 0; s < full; ++s)
      pack_grouped(scratch + s * shape::rows * step, a.slice(s * shape::rows, shape::rows).columns(k, depth));
    index panels = 1;
    for (index p = first; p < last; p += panels) {
      panels = 1;
      if (full == 0 && parts == 1 && p + direct::wide_panels(rest) <= last) panels = direct::wide_panels(rest);
      const index col = p * shape::cols, width = panels * shape::cols, cols = (std::min)(width, c.cols - col);
      const T* panel = b[p] + k * shape::cols;
      for (index s = 0; s < full; ++s)
        tile_edge<T>(tile<T, shape::rows, 1, tile_source::grouped>, shape::rows, width, shape::rows, cols, depth,
                     scratch + s * shape::rows * step, 0, panel, shape::cols, panel_size, c[s * shape::rows] + col, c.stride,
                     load);
      index row = full * shape::rows;
      for (index s = 0; s < parts; ++s) {
        const index height = rest * (s + 1) / parts - rest * s / parts;
        tile_edge<T>(panels > 1 ? direct::wide(height) : direct::narrow(height), height, width, height, cols, depth, a[row] + k,
                     a.stride, panel, shape::cols, panel_size, c[row] + col, c.stride, load);
        row += height;
      }
    }
  }
}

/// Scalars of scratch that multiply_transposed needs for a block of `rows` x `cols`.
template <class T>
constexpr index multiply_transposed_scratch(index rows, index cols, index depth) {
  using shape = tile_shape<T>;
  return (divide_up(rows, index{shape::rows}) * shape::rows + divide_up(cols, index{shape::cols}) * shape::cols) *
         (std::min)(depth, depth_block<T>(depth));
}

/// C(rows, cols) += A(depth, rows)^T B(depth, cols). One thread.
template <class T>
void multiply_transposed(matrix_view<T> c, matrix_view<const T> a, matrix_view<const T> b, T* scratch) {
  using shape = tile_shape<T>;
  const index strips = divide_up(c.rows, index{shape::rows}), panels = divide_up(c.cols, index{shape::cols});
  const index step = depth_block<T>(a.rows);
  for (index k = 0; k < a.rows; k += step) {
    const index depth = (std::min)(step, a.rows - k);
    T* const packed_b = scratch + strips * shape::rows * depth;
    for (index s = 0; s < strips; ++s)
      pack_panel(scratch + s * shape::rows * depth, shape::rows, a.slice(k, depth), s * shape::rows);
    for (index p = 0; p < panels; ++p)
      pack_panel(packed_b + p * shape::cols * depth, shape::cols, b.slice(k, depth), p * shape::cols);
    for (index p = 0; p < panels; ++p)
      for (index s = 0; s < strips; ++s) {
        const index row = s * shape::rows, col = p * shape::cols;
        tile_edge<T>(tile<T, shape::rows, 1, tile_source::transposed>, shape::rows, shape::cols,
                     (std::min)(index{shape::rows}, c.rows - row), (std::min)(index{shape::cols}, c.cols - col), depth,
                     scratch + row * depth, shape::rows, packed_b + col * depth, shape::cols, 0, c[row] + col, c.stride, true);
      }
  }
}

}  // namespace detail

namespace detail {

template <class T>
void check_product(const char* call, matrix_view<T> c, index rows, index depth_a, index depth_b, index cols) {
  if (c.rows != rows || c.cols != cols || depth_a != depth_b)
    fail(call, ": result ", c.rows, " x ", c.cols, " of factors ", rows, " x ", depth_a, " and ", depth_b, " x ", cols);
}

/// C(n, cols) (+)= A(n, depth) B. With B = w^T this is a layer's forward product y = x w^T, with B = w its input gradient
/// dx = dy w.
template <class T>
void multiply(thread_pool& pool, matrix_view<T> c, matrix_view<const T> a, const packed_matrix<T>& b, bool accumulate) {
  using shape = tile_shape<T>;
  check_product("multiply", c, a.rows, a.cols, b.depth(), b.cols());
  if (c.size() == 0) return;
  index rows = (std::min)(a.rows, index{8} * shape::rows), panels = b.panels();
  const auto tasks = [&] { return divide_up(a.rows, rows) * divide_up(b.panels(), panels); };
  const auto work = [&] { return rows * panels * shape::cols * a.cols; };  // multiply-adds
  while (tasks() < 16 && work() > 200000) {
    if (rows > panels * shape::cols && rows > shape::rows)
      rows = divide_up(divide_up(rows, 2), index{shape::rows}) * shape::rows;
    else if (panels > 1)
      panels = divide_up(panels, 2);
    else
      break;
  }
  const index across = divide_up(b.panels(), panels);
  const index scratch = multiply_rows_scratch<T>(rows, a.cols);
  pool.run(tasks(), sizeof(T) * static_cast<std::size_t>(scratch), [&](index task, int worker) {
    const index row = task / across * rows, first = task % across * panels, count = (std::min)(rows, a.rows - row);
    multiply_rows(c.slice(row, count), a.slice(row, count), b, first, (std::min)(first + panels, b.panels()), accumulate,
                  pool.scratch<T>(worker, scratch));
  });
}

/// dW(out, in) += dY(n, out)^T X(n, in): a layer's weight gradient.
template <class T>
void multiply_transposed(thread_pool& pool, matrix_view<T> dw, matrix_view<const T> dy, matrix_view<const T> x) {
  using shape = tile_shape<T>;
  check_product("multiply_transposed", dw, dy.cols, dy.rows, x.rows, x.cols);
  if (dw.size() == 0 || dy.rows == 0) return;
  index rows = (std::min)(dw.rows, index{12} * shape::rows), cols = (std::min)(dw.cols, index{512});
  const auto tasks = [&] { return divide_up(dw.rows, rows) * divide_up(dw.cols, cols); };
  while (tasks() < 16 && rows * cols * dy.rows > 200000) {
    if (rows >= cols && rows > shape::rows)
      rows = divide_up(divide_up(rows, 2), index{shape::rows}) * shape::rows;
    else if (cols > shape::cols)
      cols = divide_up(divide_up(cols, 2), index{shape::cols}) * shape::cols;
    else
      break;
  }
  const index across = divide_up(dw.cols, cols);
  const index scratch = multiply_transposed_scratch<T>(rows, cols, dy.rows);
  pool.run(tasks(), sizeof(T) * static_cast<std::size_t>(scratch), [&](index task, int worker) {
    const index row = task / across * rows, col = task % across * cols;
    const index height = (std::min)(rows, dw.rows - row), width = (std::min)(cols, dw.cols - col);
    multiply_transposed<T>(dw.slice(row, height).columns(col, width), dy.columns(row, height), x.columns(col, width),
                           pool.scratch<T>(worker, scratch));
  });
}

}  // namespace detail

GYRE_END
