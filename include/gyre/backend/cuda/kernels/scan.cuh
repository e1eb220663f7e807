// Exclusive sums of counts, in place: where the first of each kind goes. The twin of cub::DeviceScan::ExclusiveSum.
#pragma once

#include <cstdint>

#include <gyre/backend/cuda/kernels/device.cuh>

GYRE_BEGIN

namespace detail {

inline constexpr unsigned scan_threads = 256;
inline constexpr index scan_tile = 4 * static_cast<index>(scan_threads);  // four counts a thread: 16 bytes
// So many counts one block takes tile after tile: spread over the device they would cost two launches more.
inline constexpr index scan_alone = 4 * scan_tile;

constexpr index scan_tiles(index count) { return (count + scan_tile - 1) / scan_tile; }

/// values[at] .. values[at + 3], 0 from `count` on.
GYRE_DEVICE int4 scan_load(const std::int32_t* values, index at, index count) {
  if (at + 4 <= count) return *reinterpret_cast<const int4*>(values + at);
  const auto value = [&](index i) { return i < count ? values[i] : 0; };
  return make_int4(value(at), value(at + 1), value(at + 2), 0);
}
GYRE_DEVICE void scan_store(std::int32_t* values, index at, index count, int4 x) {
  if (at + 4 <= count) {
    *reinterpret_cast<int4*>(values + at) = x;
    return;
  }
  if (at < count) values[at] = x.x;
  if (at + 1 < count) values[at + 1] = x.y;
  if (at + 2 < count) values[at + 2] = x.z;
}

/// Replaces each value of the tile that begins at `first` by `start` and the sum of those before it; returns that of the next
/// tile's first. Every thread of the block calls it.
GYRE_DEVICE std::int32_t scan_one_tile(std::int32_t* values, index count, index first, std::int32_t start) {
  GYRE_SHARED(std::int32_t[scan_threads / warp_lanes], sums);
  const unsigned lane = threadIdx.x % warp_lanes, warp = threadIdx.x / warp_lanes;
  const index at = first + 4 * static_cast<index>(threadIdx.x);
  const int4 x = scan_load(values, at, count);
  const std::int32_t mine = x.x + x.y + x.z + x.w;
  std::int32_t up_to = mine;  // of the warp, mine included
  GYRE_UNROLL for (unsigned distance = 1; distance < warp_lanes; distance *= 2) {
    const std::int32_t other = __shfl_up_sync(whole_warp, up_to, distance);
    if (lane >= distance) up_to += other;
  }
  __syncthreads();  // an earlier tile's sums may still be read
  if (lane == warp_lanes - 1) sums[warp] = up_to;
  __syncthreads();
  std::int32_t before = start + up_to - mine;
  GYRE_UNROLL for (unsigned w = 0; w < scan_threads / warp_lanes; ++w) {
    if (w < warp) before += sums[w];
    start += sums[w];
  }
  scan_store(values, at, count, make_int4(before, before + x.x, before + x.x + x.y, before + x.x + x.y + x.z));
  return start;
}

/// One block for all tiles.
template <int = 0>
GYRE_KERNEL void __launch_bounds__(scan_threads) scan_in_one_block(std::int32_t* values, index count) {
  std::int32_t start = 0;
  for (index first = 0; first < count; first += scan_tile) start = scan_one_tile(values, count, first, start);
}
/// A block for every tile.
template <int = 0>
GYRE_KERNEL void __launch_bounds__(scan_threads) sum_tiles(const std::int32_t* values, index count, std::int32_t* sums) {
  const int4 x = scan_load(values, static_cast<index>(blockIdx.x) * scan_tile + 4 * static_cast<index>(threadIdx.x), count);
  const std::int32_t sum = block_sum<scan_threads>(x.x + x.y + x.z + x.w);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
template <int = 0>
GYRE_KERNEL void __launch_bounds__(scan_threads)
    scan_tiles_from(std::int32_t* values, index count, const std::int32_t* starts) {
  scan_one_tile(values, count, static_cast<index>(blockIdx.x) * scan_tile, starts[blockIdx.x]);
}

/// Values that the caller lays behind the `count` ones for exclusive_sums: those of the tiles, from a multiple of four on.
constexpr index exclusive_sums_workspace(index count) { return count <= scan_alone ? 0 : 3 + scan_tiles(count); }

/// values[i] = sum of values[0] .. values[i - 1]; the sum of all is below 2^31. `values` is aligned to 16 bytes and
/// exclusive_sums_workspace(count) longer than `count`. Reads each value twice and writes it once.
inline void exclusive_sums(std::int32_t* values, index count, simt::stream stream) {
  if (count <= scan_alone) return simt::launch(scan_in_one_block<>, 1, scan_threads, 0, stream, values, count);
  const index tiles = scan_tiles(count);
  std::int32_t* const sums = values + (count + 3) / 4 * 4;
  const dim3 blocks(static_cast<unsigned>(tiles));
  simt::launch(sum_tiles<>, blocks, scan_threads, 0, stream, values, count, sums);
  simt::launch(scan_in_one_block<>, 1, scan_threads, 0, stream, sums, tiles);
  simt::launch(scan_tiles_from<>, blocks, scan_threads, 0, stream, values, count, sums);
}

}  // namespace detail

GYRE_END
