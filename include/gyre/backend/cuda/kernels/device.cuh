// What every kernel stands on: the type it computes in, and sums over warps and blocks in a fixed order.
#pragma once

#include <gyre/backend/cuda/grid.hpp>
#include <gyre/core/bfloat16.hpp>
#include <gyre/simt.hpp>

GYRE_BEGIN

namespace detail {

using gyre::compute_t;  // what a kernel computes in where memory holds T

GYRE_DEVICE float widen(float x) { return x; }
GYRE_DEVICE double widen(double x) { return x; }
GYRE_DEVICE float widen(bfloat16 x) { return __bfloat162float(__ushort_as_bfloat16(x.bits)); }
template <class T>
GYRE_DEVICE T narrow(compute_t<T> x) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    bfloat16 y;
    y.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
    return y;
  } else {
    return x;
  }
}

inline constexpr unsigned warp_lanes = 32, whole_warp = ~0u;

/// The sum over the lanes of a whole warp, or of each `Lanes` neighbours among them, the same bits in each of these.
template <unsigned Lanes = warp_lanes, class C>
GYRE_DEVICE C warp_sum(C x) {
  GYRE_UNROLL for (int lane = Lanes / 2; lane > 0; lane /= 2) x += __shfl_xor_sync(whole_warp, x, lane);
  return x;
}
/// The largest of the lanes' numbers; NaN if any is.
template <class C>
GYRE_DEVICE C warp_max(C x) {
  GYRE_UNROLL for (int lane = warp_lanes / 2; lane > 0; lane /= 2) {
    const C other = __shfl_xor_sync(whole_warp, x, lane);
    x = x > other || x != x ? x : other;
  }
  return x;
}

/// Folds one number of each of a block's `Threads` threads with `fold`, a function of a warp; the result in every thread. Whole
/// warps; every thread of the block calls it.
template <unsigned Threads, class C, class Fold>
GYRE_DEVICE C block_fold(C x, C nothing, Fold fold) {
  static_assert(Threads % warp_lanes == 0 && Threads <= warp_lanes * warp_lanes);
  GYRE_SHARED(C[Threads / warp_lanes], parts);
  x = fold(x);
  if constexpr (Threads == warp_lanes) return x;
  __syncthreads();  // an earlier call may still be reading
  if (threadIdx.x % warp_lanes == 0) parts[threadIdx.x / warp_lanes] = x;
  __syncthreads();
  const unsigned lane = threadIdx.x % warp_lanes;
  return fold(lane < Threads / warp_lanes ? parts[lane] : nothing);
}
template <unsigned Threads, class C>
GYRE_DEVICE C block_sum(C x) {
  return block_fold<Threads>(x, C(0), [](C y) { return warp_sum(y); });
}

/// The number of this thread in a grid of one dimension.
GYRE_DEVICE index thread_number() {
  return static_cast<index>(blockIdx.x) * static_cast<index>(blockDim.x) + static_cast<index>(threadIdx.x);
}

}  // namespace detail

GYRE_END
