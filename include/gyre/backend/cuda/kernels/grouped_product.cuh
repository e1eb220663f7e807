// Products of consecutive groups of rows with a matrix each. Where groups begin is read on the device: the host knows the rows in
// all and the number of groups, and starts as many blocks as any groups of that many rows need.
#pragma once

#include <gyre/backend/cuda/kernels/product_tile.cuh>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

constexpr index product_tiles(index n) { return (n + product_tile - 1) / product_tile; }

/// Tiles down that groups of `rows` rows in all need at most. Group g has those from offsets[g] / tile + g to before
/// offsets[g + 1] / tile + g + 1: no fewer than its rows fill, because floor(a + n) - floor(a) + 1 >= ceil(n), and a number
/// that the offsets alone give.
constexpr index grouped_tiles(index rows, index groups) { return rows / product_tile + groups; }

/// What a group has from row `first` of the operands on, where a tile begins: `count` rows, if that is more than 0.
struct group_part {
  index group, first, count;
};
GYRE_DEVICE group_part part_of_group(row_groups groups, index tile) {
  index low = 0, high = groups.count;  // the last group that begins at this tile or before it is in [low, high)
  while (high - low > 1) {
    const index middle = (low + high) / 2;
    if (index{groups.offsets[middle]} / product_tile + middle <= tile)
      low = middle;
    else
      high = middle;
  }
  const index begin = groups.offsets[low], first = begin + (tile - begin / product_tile - low) * product_tile;
  return {low, first, groups.offsets[low + 1] - first};
}

/// c (rows, columns) (+)= a op(w of the row's group): w (columns, depth) transposed, or w (depth, columns). Consecutive blocks
/// have the same rows: those come from memory once, and a group's matrix stays in the cache as long as its rows last.
/// Reads at least a and the matrices of groups with rows once, writes c.
template <class T, consecutive AlongW>
GYRE_KERNEL void __launch_bounds__(product_threads, product_blocks<T>)
    multiply_groups(matrix_view<const T> a, bool aligned_a, matrix_view<const T> w, bool aligned_w, row_groups groups,
                    matrix_view<T> c, bool aligned_c, bool accumulate) {
  const index across = product_tiles(c.cols), block = blockIdx.x, column = block % across * product_tile;
  const group_part part = part_of_group(groups, block / across);
  if (part.count <= 0) return;
  const T* const matrix = w.data + part.group * groups.stride;
  const auto sums = multiply_tile<T, consecutive::depth, AlongW>(
      {a[part.first], a.stride, part.count, aligned_a},
      {AlongW == consecutive::depth ? matrix + column * w.stride : matrix + column, w.stride, c.cols - column, aligned_w},
      a.cols);
  store_tile<T>(sums, {c[part.first] + column, c.stride, part.count, c.cols - column, aligned_c, accumulate});
}

/// dw of each group += dy^T x over the group's rows, in their order. A block for each tile of each group's matrix; those of groups
/// without rows leave.
template <class T, class G>
GYRE_KERNEL void __launch_bounds__(product_threads, product_blocks<T>)
    multiply_group_columns(matrix_view<const T> dy, bool aligned_dy, matrix_view<const T> x, bool aligned_x, row_groups groups,
                           matrix_view<G> dw, bool aligned_dw) {
  const index across = product_tiles(dw.cols), tiles = product_tiles(dw.rows) * across, block = blockIdx.x;
  const index group = block / tiles, row = block % tiles / across * product_tile, column = block % across * product_tile;
  const index first = groups.offsets[group], count = groups.offsets[group + 1] - first;
  if (count == 0) return;
  const auto sums = multiply_tile<T, consecutive::outer, consecutive::outer>(
      {dy[first] + row, dy.stride, dw.rows - row, aligned_dy}, {x[first] + column, x.stride, dw.cols - column, aligned_x},
      count);
  G* const matrix = dw.data + group * groups.stride;
  store_tile<G>(sums, {matrix + row * dw.stride + column, dw.stride, dw.rows - row, dw.cols - column, aligned_dw, true});
}

}  // namespace detail

GYRE_END
