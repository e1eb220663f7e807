// Kernels of one thread for each pack of elements of a matrix, and sums of products of all elements.
#pragma once

#include <bit>

#include <gyre/backend/cuda/kernels/packs.cuh>

GYRE_BEGIN

namespace detail {

inline constexpr unsigned elementwise_threads = 256;

/// How the threads of a grid of one dimension share a matrix: a block has elementwise_threads / lanes rows and `lanes` packs of
/// each; blocks go through the tiles of `lanes` packs that a row has, then through the rows. Powers of two and 32 bits, so that
/// no element costs a division.
struct element_grid {
  index rows, cols;
  unsigned tiles, lane_bits;  // tiles of a row; lanes are 1 << lane_bits
};

/// Calls body.operator()<n>(row, column) for n elements of a row from `column` on, n Width or 1, until all elements had theirs.
template <int Width, class Body>
GYRE_KERNEL void __launch_bounds__(elementwise_threads) for_each_element(element_grid grid, Body body) {
  const unsigned lane = threadIdx.x & ((1u << grid.lane_bits) - 1);
  const index row = (static_cast<index>(blockIdx.x / grid.tiles) * elementwise_threads + threadIdx.x) >> grid.lane_bits;
  index column = ((static_cast<index>(blockIdx.x % grid.tiles) << grid.lane_bits) + lane) * Width;
  if (row >= grid.rows) return;
  if (column + Width <= grid.cols)
    body.template operator()<Width>(row, column);
  else
    for (; column < grid.cols; ++column) body.template operator()<1>(row, column);
}

/// `packed`: rows begin at packs; std::false_type: the body takes one element at a time.
template <class T, class Packed, class Body>
void launch_for_each_element(simt::stream stream, index rows, index cols, Packed packed, const Body& body) {
  const index width = packed ? pack_width<T> : 1, packs = (cols + width - 1) / width;
  const unsigned lanes = packs < elementwise_threads ? std::bit_ceil(static_cast<unsigned>(packs)) : elementwise_threads;
  const index tiles = (packs + lanes - 1) / lanes, rows_of_block = elementwise_threads / lanes;
  const element_grid grid{rows, cols, static_cast<unsigned>(tiles), static_cast<unsigned>(std::bit_width(lanes) - 1)};
  const dim3 blocks(static_cast<unsigned>((rows + rows_of_block - 1) / rows_of_block * tiles));
  constexpr int most = std::is_same_v<Packed, std::false_type> ? 1 : pack_width<T>;
  simt::launch(packed ? for_each_element<most, Body> : for_each_element<1, Body>, blocks, elementwise_threads, 0, stream, grid,
               body);
}

/// Of matrices of one shape. `body_of(views...)` makes the body; where all are without gaps they are given to it as one row.
template <class T, class BodyOf, class... X>
void launch_for_same_elements(simt::stream stream, BodyOf body_of, matrix_view<T> y, matrix_view<X>... x) {
  if (!(y.contiguous() && ... && x.contiguous()))
    return launch_for_each_element<T>(stream, y.rows, y.cols, rows_at_packs(y, x...), body_of(y, x...));
  const auto one_row = [](auto m) { return decltype(m)(m.data, 1, m.size()); };
  launch_for_each_element<T>(stream, 1, y.size(), rows_at_packs(one_row(y), one_row(x)...), body_of(one_row(y), one_row(x)...));
}

template <class T>
struct fill_elements {
  matrix_view<T> y;
  T value;
  template <int Width>
  GYRE_DEVICE void operator()(index i, index j) const {
    pack<T, Width> to;
    GYRE_UNROLL for (int v = 0; v < Width; ++v) to.at[v] = value;
    store_pack(y[i] + j, to);
  }
};
template <class T>
struct copy_elements {
  matrix_view<T> y;
  matrix_view<const T> x;
  template <int Width>
  GYRE_DEVICE void operator()(index i, index j) const {
    store_pack(y[i] + j, load_pack<Width>(x[i] + j));
  }
};
/// Between bf16 and fp32.
template <class X, class T>
struct convert_elements {
  matrix_view<T> y;
  matrix_view<const X> x;
  template <int Width>
  GYRE_DEVICE void operator()(index i, index j) const {
    static_assert(Width == 1);
    y[i][j] = narrow<T>(widen(x[i][j]));
  }
};
template <class T>
struct add_elements {
  matrix_view<T> y;
  matrix_view<const T> x;
  template <int Width>
  GYRE_DEVICE void operator()(index i, index j) const {
    const pack<T, Width> from = load_pack<Width>(x[i] + j);
    pack<T, Width> to = load_pack<Width>(y[i] + j);
    GYRE_UNROLL for (int v = 0; v < Width; ++v) to.at[v] = narrow<T>(widen(to.at[v]) + widen(from.at[v]));
    store_pack(y[i] + j, to);
  }
};
template <class T>
struct add_scaled_elements {
  matrix_view<T> y;
  matrix_view<const T> x;
  const T* factor;
  template <int Width>
  GYRE_DEVICE void operator()(index i, index j) const {
    const compute_t<T> scale = widen(factor[0]);
    const pack<T, Width> from = load_pack<Width>(x[i] + j);
    pack<T, Width> to = load_pack<Width>(y[i] + j);
    GYRE_UNROLL for (int v = 0; v < Width; ++v) to.at[v] = narrow<T>(widen(to.at[v]) + scale * widen(from.at[v]));
    store_pack(y[i] + j, to);
  }
};
template <class T>
struct gather_elements {
  matrix_view<T> y;
  matrix_view<const T> x;
  const index* from;
  template <int Width>
  GYRE_DEVICE void operator()(index i, index j) const {
    store_pack(y[i] + j, load_pack<Width>(x[from[i]] + j));
  }
};

/// The most blocks whose sums one block adds up afterwards: four for each multiprocessor of a large GPU.
inline constexpr index product_sum_blocks = 512;
constexpr index blocks_of_product_sum(index rows) {
  constexpr index warps = elementwise_threads / warp_lanes;
  const index blocks = (rows + warps - 1) / warps;
  return blocks < product_sum_blocks ? blocks : product_sum_blocks;
}

/// sums[block] = sum of x y over the block's rows: row r belongs to warp r modulo the warps of the grid, lanes share columns.
template <int Width, class T, class G>
GYRE_KERNEL void __launch_bounds__(elementwise_threads) sum_products(matrix_view<const T> x, matrix_view<const T> y, G* sums) {
  constexpr index warps = elementwise_threads / warp_lanes;
  const index step = static_cast<index>(gridDim.x) * warps;
  G sum(0);
  for (index i = thread_number() / warp_lanes; i < x.rows; i += step)
    for (index j = static_cast<index>(threadIdx.x % warp_lanes) * Width; j < x.cols; j += warp_lanes * Width) {
      const pack<T, Width> a = load_pack<Width>(x[i] + j), b = load_pack<Width>(y[i] + j);
      GYRE_UNROLL for (int v = 0; v < Width; ++v) sum += G(widen(a.at[v])) * G(widen(b.at[v]));
    }
  sum = block_sum<elementwise_threads>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
/// total[0] += sums[0] + ..., by one block.
template <class G>
GYRE_KERNEL void __launch_bounds__(elementwise_threads) add_sums(const G* sums, index count, G* total) {
  G sum(0);
  for (index n = threadIdx.x; n < count; n += elementwise_threads) sum += sums[n];
  sum = block_sum<elementwise_threads>(sum);
  if (threadIdx.x == 0) total[0] += sum;
}

}  // namespace detail

GYRE_END
