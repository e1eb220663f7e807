// Matrix products of the `cpu` backend with a matrix for each group of consecutive rows. All groups are cut into the tasks of
// one run, by sizes only; the kernels are those of single products, so each row has the bits that it has there.
#pragma once

#include <algorithm>
#include <cstddef>

#include <gyre/backend/cpu/prepared.hpp>
#include <gyre/backend/cpu/product.hpp>
#include <gyre/core/context.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

/// f(first row, rows, g) for every group with rows.
template <class F>
void for_each_group(row_groups groups, F f) {
  for (index g = 0; g < groups.count; ++g) {
    const index first = groups.offsets[g], end = groups.offsets[g + 1];
    if (first < end) f(first, end - first, g);
  }
}

template <class T>
matrix_view<T> matrix_of_group(matrix_view<T> first, row_groups groups, index g) {
  return {first.data + g * groups.stride, first.rows, first.cols, first.stride};
}

/// The group whose tasks include `task`, from a list sorted by first_task.
template <class Group>
const Group& group_of_task(const Group* groups, index count, index task) {
  return *(std::upper_bound(groups, groups + count, task, [](index t, const Group& g) { return t < g.first_task; }) - 1);
}

/// C(rows, cols) (+)= A(rows, depth) B_g, B_g packed. Returns false, having done nothing, where a group's matrix is not among
/// those that w.prepared knows.
template <class T, class W>
bool grouped_multiply(thread_pool& pool, const char* call, matrix_view<T> c, matrix_view<const T> a,
                      weight_matrix<W, packed_weights<W>> w, row_groups groups, bool backward, bool accumulate) {
  using shape = tile_shape<T>;
  struct group {
    index first, rows, first_task;
    packed_copy<W>* b;
  };
  const index used = check_row_groups(call, groups, a.rows);
  if (used == 0 || c.cols == 0) return true;
  if (w.prepared == nullptr) return false;

  thread_pool::exclusive turn(pool);
  group* const list = turn.scratch<group>((std::min)(groups.count, a.rows));
  index most = 0, known = 0;  // rows of the largest group
  for_each_group(groups, [&](index first, index rows, index g) {
    packed_copy<W>* const b = w.prepared->find(matrix_of_group(w.raw, groups, g), backward);
    if (b == nullptr) return;
    list[known++] = {first, rows, 0, b};
    most = (std::max)(most, rows);
  });
  if (known < used) return false;
  const index matrices = groups.stride == 0 ? 1 : used;
  w.prepared->pack(pool, matrices, [list](index i) -> packed_copy<W>& { return *list[i].b; });

  // A task: rows of one group by panels of its matrix, cut as in a single product.
  const index all_panels = list[0].b->matrix.panels(), wide = direct_tiles<T>::wide_panels(most);
  constexpr index height = shape::rows;
  index strips = (std::min)(index{8}, divide_up(most, height)), panels = all_panels, count = 0;
  const auto parts = [&](index rows) { return divide_up(divide_up(rows, height), strips); };
  for (;;) {
    count = 0;
    for (index i = 0; i < used; ++i) list[i].first_task = count, count += parts(list[i].rows) * divide_up(all_panels, panels);
    const index work = (std::max)((std::min)(strips * height, most), index{8}) * panels * shape::cols * a.cols;
    if (!((count < 16 && work > 150000) || (count < 48 && work > 2500000))) break;
    if (strips * height > panels * shape::cols && strips > 1)
      strips = divide_up(strips, 2);
    else if (panels > wide)
      panels = divide_up(divide_up(panels, 2), wide) * wide;
    else
      break;
  }
  const index across = divide_up(all_panels, panels);
  pool.run(count, [&](index task, int) {
    const group& g = group_of_task(list, used, task);
    const index step = divide_up(divide_up(g.rows, height), parts(g.rows)) * height, part = (task - g.first_task) / across;
    const index row = part * step, panel = (task - g.first_task) % across * panels;
    const index rows = (std::min)(step, g.rows - row);
    if (rows > 0)
      multiply_rows(c.slice(g.first + row, rows), a.slice(g.first + row, rows), g.b->matrix, panel,
                    (std::min)(panel + panels, all_panels), accumulate);
  });
  return true;
}

/// dW_g(out, in) += dY_g^T X_g for the groups that have rows; dw is group 0's.
template <class T>
void grouped_multiply_transposed(thread_pool& pool, matrix_view<T> dw, matrix_view<const T> dy, matrix_view<const T> x,
                                 row_groups groups) {
  using shape = tile_shape<T>;
  constexpr const char* call = "grouped_product_weight_gradient";
  struct group {
    index first, rows, first_task, which;
    index height, width;  // of the part of dW_g that a task computes
  };
  check_product(call, dw, dy.cols, dy.rows, x.rows, x.cols);
  const index used = check_row_groups(call, groups, dy.rows);
  if (used == 0 || dw.size() == 0) return;
  const bool apart = groups.stride >= (dw.rows - 1) * dw.stride + dw.cols ||                   // one behind the other
                     (groups.stride >= dw.cols && groups.count * groups.stride <= dw.stride);  // side by side
  if (groups.count > 1 && !apart)
    fail(call, ": matrices of ", dw.rows, " x ", dw.cols, " with rows ", dw.stride, " scalars apart overlap when they are ",
         groups.stride, " scalars apart");

  thread_pool::exclusive turn(pool);
  group* const list = turn.scratch<group>((std::min)(groups.count, dy.rows));
  // One thread packs and multiplies a part of one matrix: no thread waits for another's packing. Smaller parts pack more in all,
  // so a matrix is cut only where its rows are more than a twelfth of the work.
  constexpr index most = index{4096} / static_cast<index>(sizeof(T)), line = static_cast<index>(cache_line / sizeof(T));
  const index height = (std::min)(most / shape::rows, divide_up(dw.rows, index{shape::rows})) * shape::rows;
  const index width = (std::min)(most / shape::cols, divide_up(dw.cols, index{shape::cols})) * shape::cols;
  const auto halved = [](index n, index unit) { return divide_up(divide_up(n, 2), unit) * unit; };
  const double limit = (std::max)(1.5e5, static_cast<double>(dy.rows) * static_cast<double>(dw.size()) / 12);
  index listed = 0, count = 0;
  for_each_group(groups, [&](index first, index rows, index g) {
    group& next = list[listed++] = {first, rows, count, g, height, width};
    while (static_cast<double>(next.height * next.width) * static_cast<double>(rows) > limit) {
      if (next.height >= next.width && next.height > shape::rows)
        next.height = halved(next.height, shape::rows);
      else if (next.width > shape::cols)
        next.width = halved(next.width, shape::cols);
      else
        break;
    }
    count += divide_up(dw.rows, next.height) * divide_up(dw.cols, next.width);
  });
  // As much as groups of any sizes would take, so that the next call finds it.
  const index deepest = (std::min)(most_depth<T>, divide_up(dy.rows, index{4}) * 4);
  const index a_size = divide_up(height * deepest, line) * line, b_size = width * deepest;
  pool.run(count, sizeof(T) * static_cast<std::size_t>(a_size + b_size), [&](index task, int worker) {
    const group& g = group_of_task(list, used, task);
    const index across = divide_up(dw.cols, g.width);
    const index row = (task - g.first_task) / across * g.height, col = (task - g.first_task) % across * g.width;
    const index rows = (std::min)(g.height, dw.rows - row), cols = (std::min)(g.width, dw.cols - col);
    T* const a = pool.scratch<T>(worker, a_size + b_size);
    T* const b = a + a_size;
    const auto part = matrix_of_group(dw, groups, g.which).slice(row, rows).columns(col, cols);
    const index depth = depth_block<T>(g.rows);
    for (index k = 0; k < g.rows; k += depth) {
      const index steps = (std::min)(depth, g.rows - k);
      pack_rows<shape::rows>(a, steps, dy.slice(g.first + k, steps).columns(row, rows), 0, steps);
      pack_rows<shape::cols>(b, steps, x.slice(g.first + k, steps).columns(col, cols), 0, steps);
      multiply_strips(part, a, b, steps, 0, divide_up(rows, index{shape::rows}));
    }
  });
}

}  // namespace detail

GYRE_END
