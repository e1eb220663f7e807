// Pairs of a row and an expert sorted by expert, stably: a counting sort whose unit is a run of pairs that one warp takes in order.
//
// counts (experts, units): how many pairs of each unit go to each expert; their exclusive sums are where the first of them goes. So
// a pair's row depends on the pairs alone, not on the order in which warps run.
#pragma once

#include <algorithm>
#include <cstdint>

#include <gyre/backend/cuda/kernels/device.cuh>

GYRE_BEGIN

namespace detail {

inline constexpr unsigned group_threads = 128;
// A unit has at least 256 pairs, eight steps of a warp; a fourth of the experts, so that counts are at most four times as many as
// pairs; and so many that 4096 units, the warps that a large device holds at once, have all.
inline constexpr index group_least = 256, group_experts_share = 4, group_most_units = 4096;

struct pair_units {
  index pairs, experts, length, count;  // length: pairs of a unit; count: at least 1

  pair_units(index pairs_, index experts_) : pairs(pairs_), experts(experts_) {
    const auto up = [](index x, index by) { return (x + by - 1) / by; };
    length = (std::max)({group_least, up(experts, group_experts_share), up(pairs, group_most_units)});
    length = up(length, warp_lanes) * static_cast<index>(warp_lanes);
    count = (std::max)(up(pairs, length), index{1});
  }
  /// Device memory must not be written outside, and the host cannot look without waiting: a pair that names no expert goes to the
  /// nearest one there is, so that places stay a permutation.
  GYRE_DEVICE index expert(std::int32_t named) const {
    return named < 0 ? 0 : named < experts ? static_cast<index>(named) : experts - 1;
  }
};

/// Reads 4 bytes a pair; counts are a unit's own, so that its additions meet no other's.
template <int = 0>
GYRE_KERNEL void __launch_bounds__(group_threads)
    count_pairs(const std::int32_t* chosen, pair_units units, std::int32_t* counts) {
  const index unit = thread_number() / static_cast<index>(warp_lanes);
  if (unit >= units.count) return;
  const index lane = threadIdx.x % warp_lanes;
  for (index e = lane; e < units.experts; e += static_cast<index>(warp_lanes)) counts[e * units.count + unit] = 0;
  __syncwarp();  // zeros come first
  const index begin = unit * units.length, end = begin + units.length < units.pairs ? begin + units.length : units.pairs;
  for (index p = begin + lane; p < end; p += static_cast<index>(warp_lanes))
    atomicAdd(&counts[units.expert(chosen[p]) * units.count + unit], 1);
}

/// `next`: the exclusive sums of the counts, which become where a unit's next pair of an expert goes. Reads 4 bytes a pair, writes 8.
template <int = 0>
GYRE_KERNEL void __launch_bounds__(group_threads)
    place_pairs(const std::int32_t* chosen, pair_units units, std::int32_t* next, std::int32_t* offsets, std::int32_t* place,
                std::int32_t* source) {
  const index unit = thread_number() / static_cast<index>(warp_lanes);
  if (unit >= units.count) return;
  const unsigned lane = threadIdx.x % warp_lanes, before = (1u << lane) - 1;
  if (unit == 0) {  // its sums are the experts' first rows, and nobody else changes them
    for (index e = lane; e < units.experts; e += static_cast<index>(warp_lanes)) offsets[e] = next[e * units.count];
    if (lane == 0) offsets[units.experts] = static_cast<std::int32_t>(units.pairs);
  }
  const index begin = unit * units.length, end = begin + units.length < units.pairs ? begin + units.length : units.pairs;
  for (index first = begin; first < end; first += static_cast<index>(warp_lanes)) {
    const index p = first + static_cast<index>(lane);
    const int expert = p < end ? static_cast<int>(units.expert(chosen[p])) : -1;
    const unsigned alike = __match_any_sync(whole_warp, expert);
    const int leader = __ffs(static_cast<int>(alike)) - 1;
    std::int32_t start = 0;
    __syncwarp();  // what the leaders before left
    if (expert >= 0 && static_cast<int>(lane) == leader) {
      std::int32_t& of_expert = next[expert * units.count + unit];
      start = of_expert;
      of_expert = start + __popc(alike);
    }
    start = __shfl_sync(whole_warp, start, leader);
    if (expert < 0) continue;
    const std::int32_t row = start + __popc(alike & before);
    place[p] = row;
    source[row] = static_cast<std::int32_t>(p);
  }
}

}  // namespace detail

GYRE_END
