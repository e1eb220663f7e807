// Sums over rows in a fixed order: blocks sum some rows each, and then the same kernel sums what the blocks left.
#pragma once

#include <gyre/backend/cuda/kernels/packs.cuh>

GYRE_BEGIN

namespace detail {

/// Partial sums cost a write and a read of their columns. Eight rows keep that below a fourth of what a sum reads; 512 partial
/// sums are enough blocks for every GPU.
inline constexpr index least_rows_of_partial = 8, most_partials = 512;
constexpr index rows_of_partial(index rows) {
  const index even = (rows + most_partials - 1) / most_partials;
  return even > least_rows_of_partial ? even : least_rows_of_partial;
}
constexpr index partials_of(index rows) { return (rows + rows_of_partial(rows) - 1) / rows_of_partial(rows); }

inline constexpr unsigned column_sum_threads = 256;

/// Sums the columns of blockIdx.y's rows: rows r of them belong to warp r modulo the block's warps, a lane has Width columns.
/// body.operator()<Width>(row, column) is a pack of terms. Assigns row blockIdx.y of sums, or adds to row 0 with `accumulate`.
template <int Width, class G, class Body>
GYRE_KERNEL void __launch_bounds__(column_sum_threads)
    sum_columns(index rows, index cols, index rows_of_block, Body body, G* sums, bool accumulate) {
  constexpr unsigned warps = column_sum_threads / warp_lanes, width = Width, columns_of_block = warp_lanes * width;
  using shared_pack = pack<G, Width>;
  GYRE_SHARED(shared_pack[warps][warp_lanes], parts);
  const unsigned lane = threadIdx.x % warp_lanes, warp = threadIdx.x / warp_lanes;
  const index first = static_cast<index>(blockIdx.x) * columns_of_block, column = first + static_cast<index>(lane * width);
  const index begin = static_cast<index>(blockIdx.y) * rows_of_block;
  const index end = begin + rows_of_block < rows ? begin + rows_of_block : rows;
  pack<G, Width> sum{};
  if (column < cols)
    for (index i = begin + warp; i < end; i += warps) {
      const pack<G, Width> terms = body.template operator()<Width>(i, column);
      GYRE_UNROLL for (int v = 0; v < Width; ++v) sum.at[v] += terms.at[v];
    }
  parts[warp][lane] = sum;
  __syncthreads();
  for (unsigned c = threadIdx.x; c < columns_of_block; c += column_sum_threads) {
    if (first + c >= cols) return;
    G total = parts[0][c / width].at[c % width];
    for (unsigned w = 1; w < warps; ++w) total += parts[w][c / width].at[c % width];
    if (accumulate)
      sums[first + c] += total;
    else
      sums[static_cast<index>(blockIdx.y) * cols + first + c] = total;
  }
}

template <class T, class G>
struct terms_of_matrix {
  matrix_view<const T> x;
  template <int Width>
  GYRE_DEVICE pack<G, Width> operator()(index i, index j) const {
    const pack<T, Width> from = load_pack<Width>(x[i] + j);
    pack<G, Width> terms;
    GYRE_UNROLL for (int v = 0; v < Width; ++v) terms.at[v] = G(widen(from.at[v]));
    return terms;
  }
};

/// One partial sum for every rows_of_block rows of body's terms; `packed`: the body reads whole packs of T.
template <class T, class G, class Body>
void launch_sum_columns(simt::stream stream, index rows, index cols, index rows_of_block, bool packed, const Body& body,
                        G* sums, bool accumulate) {
  const dim3 grid(blocks_for(cols, warp_lanes * static_cast<unsigned>(packed ? pack_width<T> : 1)).x,
                  static_cast<unsigned>((rows + rows_of_block - 1) / rows_of_block));
  simt::launch(packed ? sum_columns<pack_width<T>, G, Body> : sum_columns<1, G, Body>, grid, column_sum_threads, 0, stream,
               rows, cols, rows_of_block, body, sums, accumulate);
}
/// sum[j] += partial[0][j] + partial[1][j] + ...
template <class G>
void launch_add_partials(simt::stream stream, const G* partial, index partials, index cols, G* sum) {
  const matrix_view<const G> x(partial, partials, cols);
  if (partials > 0)
    launch_sum_columns<G>(stream, partials, cols, partials, whole_packs<G>(cols, x), terms_of_matrix<G, G>{x}, sum, true);
}

}  // namespace detail

GYRE_END
