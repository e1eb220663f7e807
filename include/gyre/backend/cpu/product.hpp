// Matrix products of the `cpu` backend. Every element of a result is one chain of multiply-adds in the order of the inner
// dimension, whatever the number of threads, of rows, or the blocking: a row computed alone has the bits it has among thousands.
#pragma once

#include <algorithm>
#include <cstddef>

#include <gyre/backend/cpu/packed.hpp>
#include <gyre/backend/cpu/pool.hpp>
#include <gyre/backend/cpu/tile.hpp>
#include <gyre/core/types.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

/// Steps of the inner dimension between two visits to the result: few enough that a panel of B stays in the first-level cache.
template <class T>
inline constexpr index most_depth = 1536 / static_cast<index>(sizeof(T));

/// The same in equal parts.
template <class T>
constexpr index depth_block(index depth) {
  const index parts = (std::max)(index{1}, divide_up(depth, most_depth<T>));
  return (std::max)(index{4}, divide_up(divide_up(depth, parts), index{4}) * 4);
}

/// C (+)= A B, one thread; A(rows, depth) where it lies, B in panels of tile_shape::cols columns: element (k, j) of panel p at
/// b[p * b_panel + k * b_step + j]. C's column 0 is panel 0's; columns of the last panel that C does not have are left out.
template <class T>
void multiply_panels(matrix_view<T> c, matrix_view<const T> a, const T* b, index b_step, index b_panel, bool load) {
  using tiles = direct_tiles<T>;
  constexpr index panel_width = tile_shape<T>::cols;
  if (a.rows == 0) return;
  const index wide = tiles::wide_panels(a.rows);
  for (index col = 0, width = 0; col < c.cols; col += width) {
    width = c.cols - col > (wide - 1) * panel_width ? wide * panel_width : panel_width;
    const index cols = (std::min)(width, c.cols - col);
    const T* panel = b + col / panel_width * b_panel;
    const index ahead = a.cols * panel_width / a.rows;  // each tile fetches its share of the next panel
    for (index row = 0, height = 0; row < a.rows; row += height) {
      height = tiles::next(a.rows - row);
      T* const here = c[row] + col;
      tile_edge<T>(width > panel_width ? tiles::wide(height) : tiles::narrow(height), height, width, height, cols,
                   {a.cols, a[row], a.stride, panel, b_step, b_panel, here, c.stride, load,
                    load ? here + height * c.stride : here, panel + b_panel + row * ahead});
    }
  }
}

/// C (+)= A B for the panels [first, last) of B, one thread; c spans all columns of B.
template <class T>
void multiply_rows(matrix_view<T> c, matrix_view<const T> a, const packed_matrix<T>& b, index first, index last,
                   bool accumulate) {
  constexpr index width = tile_shape<T>::cols;
  const index step = depth_block<T>(a.cols), begin = first * width, end = (std::min)(last * width, c.cols);
  for (index k = 0; k < a.cols || k == 0; k += step)
    multiply_panels(c.columns(begin, end - begin), a.columns(k, (std::min)(step, a.cols - k)), b[first] + k * width, width,
                    width * a.cols, accumulate || k > 0);
}

/// C += A^T B for strips [first, last) of tile_shape::rows rows of C, A and B packed by pack_rows.
template <class T>
void multiply_strips(matrix_view<T> c, const T* a, const T* b, index depth, index first, index last) {
  using shape = tile_shape<T>;
  constexpr index rows = shape::rows, cols = shape::cols;
  const index ahead = depth * cols / (last - first);  // each tile fetches its share of the next panel
  for (index col = 0; col < c.cols; col += cols)
    for (index row = first * rows; row < (std::min)(last * rows, c.rows); row += rows)
      tile_edge<T>(tile<T, shape::rows, 1, tile_source::transposed>, rows, cols, (std::min)(rows, c.rows - row),
                   (std::min)(cols, c.cols - col),
                   {depth, a + row * depth, rows, b + col * depth, cols, 0, c[row] + col, c.stride, true,
                    row + rows < last * rows ? c[row + rows] + col : c[first * rows] + col + cols,
                    b + (col + cols) * depth + (row / rows - first) * ahead});
}

/// How a product C(rows, panels) is cut into tasks: by its sizes only, never by the number of threads.
template <class T>
struct product_tasks {
  index rows, panels;  // of a task
  index rows_total, panels_total;

  product_tasks(index n, index panel_count, index depth) : rows_total(n), panels_total(panel_count) {
    using shape = tile_shape<T>;
    constexpr index most = 8 * shape::rows;  // so many rows of A stay in the second-level cache
    const index strips = divide_up(n, index{shape::rows});
    rows = (std::min)(n, divide_up(strips, divide_up(n, most)) * shape::rows);
    panels = panel_count;
    const index wide = direct_tiles<T>::wide_panels(n);
    // Multiply-adds of a task; with few rows the weights' way through the caches takes as long as 8 rows would.
    const auto work = [&] { return (std::max)(rows, index{8}) * panels * shape::cols * depth; };
    while ((count() < 16 && work() > 150000) || (count() < 48 && work() > 2500000)) {
      if (rows > panels * shape::cols && rows > shape::rows)
        rows = divide_up(divide_up(rows, 2), index{shape::rows}) * shape::rows;
      else if (panels > wide)
        panels = divide_up(divide_up(panels, 2), wide) * wide;
      else
        break;
    }
  }
  index across() const { return divide_up(panels_total, panels); }
  index count() const { return divide_up(rows_total, rows) * across(); }
};

/// C(n, cols) (+)= A(n, depth) B. With B = w^T this is a layer's forward product y = x w^T, with B = w its input gradient
/// dx = dy w.
template <class T>
void multiply(thread_pool& pool, matrix_view<T> c, matrix_view<const T> a, const packed_matrix<T>& b, bool accumulate) {
  check_product("multiply", c, a.rows, a.cols, b.depth(), b.cols());
  if (c.size() == 0) return;
  const product_tasks<T> cut(a.rows, b.panels(), a.cols);
  const index across = cut.across();
  pool.run(cut.count(), [&](index task, int) {
    const index row = task / across * cut.rows, first = task % across * cut.panels, count = (std::min)(cut.rows, a.rows - row);
    multiply_rows(c.slice(row, count), a.slice(row, count), b, first, (std::min)(first + cut.panels, b.panels()), accumulate);
  });
}

/// dW(out, in) += dY(n, out)^T X(n, in): a layer's weight gradient.
template <class T>
void multiply_transposed(thread_pool& pool, matrix_view<T> dw, matrix_view<const T> dy, matrix_view<const T> x) {
  using shape = tile_shape<T>;
  check_product("multiply_transposed", dw, dy.cols, dy.rows, x.rows, x.cols);
  if (dw.size() == 0 || dy.rows == 0) return;
  // One part of dW and of the tokens at a time: both factors of a part are packed by all threads, then multiplied by all.
  const index most = index{4096} / static_cast<index>(sizeof(T));
  const index height = (std::min)(most / shape::rows * shape::rows, divide_up(dw.rows, index{shape::rows}) * shape::rows);
  const index width = (std::min)(most, divide_up(dw.cols, index{shape::cols}) * shape::cols), depth = depth_block<T>(dy.rows);
  thread_pool::exclusive turn(pool);
  constexpr index line = static_cast<index>(cache_line / sizeof(T));
  const index a_size = divide_up(height * depth, line) * line;
  T* const a = turn.scratch<T>(a_size + width * depth);
  T* const b = a + a_size;
  for (index col = 0; col < dw.cols; col += width)
    for (index row = 0; row < dw.rows; row += height) {
      const index rows = (std::min)(height, dw.rows - row), cols = (std::min)(width, dw.cols - col);
      for (index k = 0; k < dy.rows; k += depth) {
        const index steps = (std::min)(depth, dy.rows - k);
        const auto dys = dy.slice(k, steps).columns(row, rows), xs = x.slice(k, steps).columns(col, cols);
        const index together = (std::max)(index{4}, index{32768} / (rows + cols));  // tokens a packing task
        pool.run(divide_up(steps, together), [&](index task, int) {
          const index end = (std::min)(steps, (task + 1) * together);
          pack_rows<shape::rows>(a, steps, dys, task * together, end);
          pack_rows<shape::cols>(b, steps, xs, task * together, end);
        });
        const auto part = dw.slice(row, rows).columns(col, cols);
        const index strips = divide_up(rows, index{shape::rows});
        const index group = (std::max)(index{1}, (std::min)(index{4}, index{400000} / (shape::rows * cols * steps)));
        pool.run(divide_up(strips, group), [&](index task, int) {
          multiply_strips(part, a, b, steps, task * group, (std::min)(strips, (task + 1) * group));
        });
      }
    }
}

}  // namespace detail

GYRE_END
