// Rows on their way to experts and back. All of it is bound by memory: every row that is named is read or written once.
#pragma once

#include <algorithm>
#include <cstdint>

#include <gyre/backend/cuda/kernels/packs.cuh>

GYRE_BEGIN

namespace detail {

inline constexpr unsigned pair_threads = 256;
// Warps that keep the memory of a large device busy. Where rows are fewer, several warps share a row's columns.
inline constexpr index pair_warps = 2048;

/// Blocks for warps in x that have a row each, and in y that share its columns.
inline dim3 blocks_for_rows(index rows, index cols, int pack) {
  dim3 blocks = blocks_for(rows * static_cast<index>(warp_lanes), pair_threads);
  const index steps = (cols + pack * static_cast<index>(warp_lanes) - 1) / (pack * static_cast<index>(warp_lanes));
  const index shares = (pair_warps + rows - 1) / (std::max)(rows, index{1});
  blocks.y = static_cast<unsigned>((std::max)((std::min)(steps, shares), index{1}));
  return blocks;
}

/// Columns of a row, `Pack` at a time: f(column, how many of them there are) for those of this lane.
template <int Pack, class F>
GYRE_DEVICE void each_pack(index cols, F f) {
  const index lane = threadIdx.x % warp_lanes, step = Pack * static_cast<index>(warp_lanes);
  for (index c = blockIdx.y * step + lane * Pack; c < cols; c += gridDim.y * step) f(c, cols - c);
}
/// The first `count` numbers of a pack; its own access where there are as many.
template <int Pack, class T>
GYRE_DEVICE pack<T, Pack> load_up_to(const T* from, index count) {
  if (count >= Pack) return load_pack<Pack>(from);
  pack<T, Pack> x;
  GYRE_UNROLL for (int n = 0; n < Pack; ++n) x.at[n] = n < count ? from[n] : narrow<T>(0);
  return x;
}
template <int Pack, class T>
GYRE_DEVICE void store_up_to(T* to, index count, const pack<T, Pack>& x) {
  if constexpr (Pack > 1)
    if (count >= Pack) return store_pack(to, x);
  GYRE_UNROLL for (int n = 0; n < Pack; ++n) {
    if (n < count) to[n] = x.at[n];
  }
}

template <int Pack, class T>
GYRE_KERNEL void __launch_bounds__(pair_threads)
    spread_rows(matrix_view<const T> x, const std::int32_t* source, index active, matrix_view<T> y) {
  const index row = thread_number() / static_cast<index>(warp_lanes);
  if (row >= y.rows) return;
  const T* const from = x[source[row] / static_cast<std::int32_t>(active)];
  T* const to = y[row];
  each_pack<Pack>(y.cols, [&](index c, index count) { store_up_to(to + c, count, load_up_to<Pack>(from + c, count)); });
}

template <int Pack, class T, class S>
GYRE_KERNEL void __launch_bounds__(pair_threads)
    collect_rows(matrix_view<const T> y, const std::int32_t* place, const S* gates, index active, matrix_view<T> x) {
  const index row = thread_number() / static_cast<index>(warp_lanes);
  if (row >= x.rows) return;
  T* const to = x[row];
  each_pack<Pack>(x.cols, [&](index c, index count) {
    S sum[Pack] = {};
    for (index p = row * active; p < (row + 1) * active; ++p) {
      const auto value = load_up_to<Pack>(y[place[p]] + c, count);
      const S gate = gates != nullptr ? gates[p] : S(1);
      GYRE_UNROLL for (int n = 0; n < Pack; ++n) sum[n] += gate * static_cast<S>(widen(value.at[n]));
    }
    auto result = load_up_to<Pack>(to + c, count);
    GYRE_UNROLL for (int n = 0; n < Pack; ++n) result.at[n] =
        narrow<T>(static_cast<compute_t<T>>(static_cast<S>(widen(result.at[n])) + sum[n]));
    store_up_to(to + c, count, result);
  });
}

/// A warp for every pair; dx is read `active` times, but all times but one from the second-level cache. dy may be y.
template <int Pack, class T, class S>
GYRE_KERNEL void __launch_bounds__(pair_threads)
    collect_rows_backward(matrix_view<const T> dx, matrix_view<const T> y, const std::int32_t* place, const S* gates,
                          index active, matrix_view<T> dy, S* d_gates) {
  const index pair = thread_number() / static_cast<index>(warp_lanes);
  if (pair >= dx.rows * active) return;
  const T* const from = dx[pair / active];
  const T* const values = y[place[pair]];
  T* const to = dy[place[pair]];
  const S gate = gates[pair];
  S dot = 0;
  each_pack<Pack>(dx.cols, [&](index c, index count) {
    auto gradient = load_up_to<Pack>(from + c, count);
    const auto value = load_up_to<Pack>(values + c, count);
    GYRE_UNROLL for (int n = 0; n < Pack; ++n) {
      const S d = static_cast<S>(widen(gradient.at[n]));
      dot += d * static_cast<S>(widen(value.at[n]));  // behind the row both are 0
      gradient.at[n] = narrow<T>(static_cast<compute_t<T>>(gate * d));
    }
    store_up_to(to + c, count, gradient);
  });
  dot = warp_sum(dot);
  if (threadIdx.x % warp_lanes == 0) d_gates[pair] += dot;
}

}  // namespace detail

GYRE_END
