// Products of bf16 tiles on tensor cores, for the kernels of sequence attention: heads of 64 and 128 features on addresses of
// 16 bytes. Scores and sums are fp32.
#pragma once

#include <cstdint>
#include <cstring>

#include <gyre/backend/cuda/kernels/device.cuh>

GYRE_BEGIN

namespace detail {

GYRE_DEVICE std::uint32_t bf16_pair(float x, float y) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
  std::uint32_t bits;
  std::memcpy(&bits, &both, sizeof(bits));
  return bits;
}

/// Rows of bf16 in shared memory. A warp reads 8 features of 8 rows at once, which are 16 bytes more than the row apart: no
/// bank twice.
template <unsigned Width_, unsigned Warps, unsigned Right = 64>
struct bf16_tile {
  using T = bfloat16;
  static constexpr unsigned width = Width_, warps = Warps, threads = warp_lanes * Warps, left = 16 * Warps, right = Right,
                            stride = Width_ + 8, steps = right / 16, features = Width_ / 8;

  /// Copies rows that source(row) points at, zeros where that is null; arrived after a wait.
  template <unsigned Rows, class Source>
  static GYRE_DEVICE void load(T* to, Source source) {
    constexpr unsigned across = Width_ / 8;
    const unsigned first = threadIdx.x % across * 8;
    for (unsigned i = threadIdx.x / across; i < Rows; i += threads / across) {
      const T* const from = source(i);
      if (from != nullptr)
        __pipeline_memcpy_async(to + i * stride + first, from + first, 16);
      else
        *reinterpret_cast<uint4*>(to + i * stride + first) = uint4{0, 0, 0, 0};
    }
    __pipeline_commit();
  }

  /// A thread has two rows of a warp's 16, `row`, and of every 8 columns `column` and the next: parts 0, 1 of row 0, 2, 3 of 1.
  static GYRE_DEVICE unsigned first_row() { return threadIdx.x / warp_lanes * 16; }
  static GYRE_DEVICE unsigned row(unsigned i) { return first_row() + threadIdx.x % warp_lanes / 4 + 8 * i; }
  static GYRE_DEVICE unsigned column() { return threadIdx.x % 4 * 2; }

  /// The dot products of the warp's rows of a with 16 rows of b.
  static GYRE_DEVICE void multiply(simt::fragment_c& low, simt::fragment_c& high, const T* a, const T* b) {
    const unsigned lane = threadIdx.x % warp_lanes;
    GYRE_UNROLL for (unsigned d = 0; d < Width_; d += 16) {
      const auto x = simt::load_matrices<4>(a + (first_row() + lane % 16) * stride + d + lane / 16 * 8);
      const auto y = simt::load_matrices<4>(b + (lane % 8 + lane / 16 * 8) * stride + d + lane / 8 % 2 * 8);
      const simt::fragment_a rows{{x.part[0], x.part[1], x.part[2], x.part[3]}};
      simt::multiply_bf16(low, rows, simt::fragment_b{{y.part[0], y.part[1]}});
      simt::multiply_bf16(high, rows, simt::fragment_b{{y.part[2], y.part[3]}});
    }
  }

  /// sums += 16 columns of scores, rounded to bf16, times 16 rows of b. A row takes them from the tensor core if it sees all,
  /// and otherwise those that it sees one by one, sees(i, column of the 16): those that it does not may be NaN, and so would be
  /// 0 times that. `everyone`: all rows of the warp see all. `shared`: 17 floats for every row of the block.
  template <class Sees>
  static GYRE_DEVICE void accumulate(float (&sums)[features][4], const simt::fragment_c& low, const simt::fragment_c& high,
                                     const T* b, const bool (&sees_all)[2], bool everyone, float* shared, Sees sees) {
    const unsigned lane = threadIdx.x % warp_lanes;
    const simt::fragment_a scores{{bf16_pair(low.part[0], low.part[1]), bf16_pair(low.part[2], low.part[3]),
                                   bf16_pair(high.part[0], high.part[1]), bf16_pair(high.part[2], high.part[3])}};
    GYRE_UNROLL for (unsigned n = 0; n < features; n += 2) {
      const auto y = simt::load_matrices<4, true>(b + lane % 16 * stride + 8 * n + lane / 16 * 8);
      GYRE_UNROLL for (unsigned m = 0; m < 2; ++m) {
        float(&to)[4] = sums[n + m];
        simt::fragment_c c{{to[0], to[1], to[2], to[3]}};
        simt::multiply_bf16(c, scores, simt::fragment_b{{y.part[2 * m], y.part[2 * m + 1]}});
        GYRE_UNROLL for (unsigned e = 0; e < 4; ++e) to[e] = sees_all[e / 2] ? c.part[e] : to[e];
      }
    }
    if (everyone) return;
    __syncwarp();  // the call before may still be read
    GYRE_UNROLL for (unsigned e = 0; e < 4; ++e) {
      shared[row(e / 2) * 17 + column() + e % 2] = widen(narrow<T>(low.part[e]));
      shared[row(e / 2) * 17 + column() + e % 2 + 8] = widen(narrow<T>(high.part[e]));
    }
    __syncwarp();
    for (unsigned j = 0; j < 16; ++j) {
      const T* const y = b + j * stride + column();
      GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {
        if (sees_all[i] || !sees(i, j)) continue;
        const float score = shared[row(i) * 17 + j];
        GYRE_UNROLL for (unsigned n = 0; n < features; ++n) GYRE_UNROLL for (unsigned e = 0; e < 2; ++e) sums[n][2 * i + e] +=
            score * widen(y[8 * n + e]);
      }
    }
  }

  /// Writes this thread's features of row i, divided by `divisor`.
  static GYRE_DEVICE void store(T* to, const float (&x)[features][4], unsigned i, float divisor) {
    GYRE_UNROLL for (unsigned n = 0; n < features; ++n) * reinterpret_cast<std::uint32_t*>(to + 8 * n + column()) =
        bf16_pair(x[n][2 * i] / divisor, x[n][2 * i + 1] / divisor);
  }
};

}  // namespace detail

GYRE_END
