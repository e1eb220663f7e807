// A block's part of a matrix product: 64 x 64 sums, whose factors pass through shared memory. Every sum is one chain of
// multiply-adds in the order of the depth (of bf16: of tensor-core steps of 16), so that its bits do not depend on what else is in
// the tile.
#pragma once

#include <type_traits>

#include <gyre/backend/cuda/kernels/device.cuh>

GYRE_BEGIN

namespace detail {

/// Sums down and across a tile; bytes of depth that a stage has of each of them: four 16-byte copies, and one step of a line in
/// shared memory stays odd in units of 16 bytes, which spreads eight lines over all banks. 128 threads have 32 sums each, and
/// three stages (30 KiB at most) let at least four blocks into a multiprocessor of sm_80, and keep two stages' copies in flight.
/// Not measured on a GPU.
inline constexpr unsigned product_tile = 64, product_stage_bytes = 64, product_threads = 128, product_stages = 3;

/// Which dimension of a factor lies in consecutive scalars: the depth, or the other one, whose size the result has.
enum class consecutive { depth, outer };

/// A factor from a tile's first row or column on.
template <class T>
struct product_factor {
  const T* from;
  index stride;
  index outer;   // rows or columns that exist from here on
  bool aligned;  // `from` and lines to 16 bytes
};

/// A stage of a factor in shared memory: `lines` of `width` consecutive scalars.
template <class T, consecutive Along>
struct factor_stage {
  static constexpr unsigned vector = 16 / sizeof(T), depth = product_stage_bytes / sizeof(T);
  static constexpr unsigned lines = Along == consecutive::depth ? product_tile : depth;
  static constexpr unsigned width = Along == consecutive::depth ? depth : product_tile;
  static constexpr unsigned pitch = width + vector;
  static_assert(pitch / vector % 2 == 1);

  alignas(16) T at[lines][pitch];

  /// Starts copies of `depth` steps of the factor, of which `left` exist; zeros where there is nothing.
  GYRE_DEVICE void copy(const product_factor<T>& f, index first, index left) {
    const T* const from = f.from + (Along == consecutive::depth ? first : first * f.stride);
    const index real_lines = Along == consecutive::depth ? f.outer : left, real = Along == consecutive::depth ? left : f.outer;
    if (f.aligned) {
      for (unsigned i = threadIdx.x; i < lines * (width / vector); i += product_threads) {
        const unsigned line = i / (width / vector), column = i % (width / vector) * vector;
        const index more = line < real_lines ? real - column : 0;
        const unsigned there = more < 0 ? 0 : more < vector ? static_cast<unsigned>(more) : vector;
        __pipeline_memcpy_async(&at[line][column], from + line * f.stride + column, 16, 16 - there * sizeof(T));
      }
    } else {
      for (unsigned i = threadIdx.x; i < lines * width; i += product_threads) {
        const unsigned line = i / width, column = i % width;
        const bool there = line < real_lines && column < real;
        const T* const source = from + line * f.stride + column;
        if constexpr (sizeof(T) >= 4)
          __pipeline_memcpy_async(&at[line][column], source, sizeof(T), there ? 0 : sizeof(T));
        else  // fewer bytes than an asynchronous copy can have
          at[line][column] = there ? *source : narrow<T>(0);
      }
    }
  }
};

/// A thread's sums, 8 down and 4 across, by multiply-adds in registers.
template <class T, consecutive AlongA, consecutive AlongB>
struct product_sums {
  static constexpr unsigned down = 8, across = 4, lanes_down = product_tile / down, lanes_across = product_tile / across;
  static_assert(lanes_down * lanes_across == product_threads);
  static constexpr unsigned vector = factor_stage<T, AlongA>::vector;

  T sum[down][across] = {};

  GYRE_DEVICE static unsigned row(unsigned i) { return place<AlongA, lanes_down>(threadIdx.x / lanes_across, i); }
  GYRE_DEVICE static unsigned column(unsigned j) { return place<AlongB, lanes_across>(threadIdx.x % lanes_across, j); }
  GYRE_DEVICE T value(unsigned i, unsigned j) const { return sum[i][j]; }

  GYRE_DEVICE void add(const factor_stage<T, AlongA>& a, const factor_stage<T, AlongB>& b) {
    GYRE_UNROLL for (unsigned k = 0; k < factor_stage<T, AlongA>::depth; k += vector) {
      T from_a[vector][down], from_b[vector][across];
      read<lanes_down>(a, threadIdx.x / lanes_across, k, from_a);
      read<lanes_across>(b, threadIdx.x % lanes_across, k, from_b);
      GYRE_UNROLL for (unsigned step = 0; step < vector; ++step) GYRE_UNROLL for (unsigned i = 0; i < down; ++i)
          GYRE_UNROLL for (unsigned j = 0; j < across; ++j) sum[i][j] += from_a[step][i] * from_b[step][j];
    }
  }

 private:
  struct alignas(16) piece {
    T at[vector];
  };

  /// The row or column of a lane's element i: read 16 bytes at a time, along the depth or not.
  template <consecutive Along, unsigned Lanes>
  GYRE_DEVICE static unsigned place(unsigned lane, unsigned i) {
    if constexpr (Along == consecutive::depth) return lane + Lanes * i;
    return (lane + Lanes * (i / vector)) * vector + i % vector;
  }
  template <unsigned Lanes, consecutive Along, unsigned Each>
  GYRE_DEVICE static void read(const factor_stage<T, Along>& stage, unsigned lane, unsigned k, T (&to)[vector][Each]) {
    if constexpr (Along == consecutive::depth) GYRE_UNROLL for (unsigned i = 0; i < Each; ++i) {
        const piece p = *reinterpret_cast<const piece*>(&stage.at[place<Along, Lanes>(lane, i)][k]);
        GYRE_UNROLL for (unsigned step = 0; step < vector; ++step) to[step][i] = p.at[step];
      }
    else
      GYRE_UNROLL for (unsigned step = 0; step < vector; ++step) GYRE_UNROLL for (unsigned i = 0; i < Each; i += vector) {
        const piece p = *reinterpret_cast<const piece*>(&stage.at[k + step][place<Along, Lanes>(lane, i)]);
        GYRE_UNROLL for (unsigned e = 0; e < vector; ++e) to[step][i + e] = p.at[e];
      }
  }
};

/// bf16: a warp has 32 x 32 sums in fp32, by tensor cores.
template <consecutive AlongA, consecutive AlongB>
struct product_sums<__nv_bfloat16, AlongA, AlongB> {
  using T = __nv_bfloat16;
  static constexpr unsigned down = 4, across = 8, warp_tile = 32;
  static_assert(product_threads / warp_lanes == (product_tile / warp_tile) * (product_tile / warp_tile));

  simt::fragment_c sum[2][4] = {};  // of 16 x 8 sums

  GYRE_DEVICE static unsigned row(unsigned i) { return first_row() + i / 2 * 16 + i % 2 * 8 + threadIdx.x % warp_lanes / 4; }
  GYRE_DEVICE static unsigned column(unsigned j) { return first_column() + j / 2 * 8 + threadIdx.x % 4 * 2 + j % 2; }
  GYRE_DEVICE float value(unsigned i, unsigned j) const { return sum[i / 2][j / 2].part[i % 2 * 2 + j % 2]; }

  GYRE_DEVICE void add(const factor_stage<T, AlongA>& a, const factor_stage<T, AlongB>& b) {
    const unsigned lane = threadIdx.x % warp_lanes, line = lane % 8, low = lane / 8 % 2 * 8, high = lane / 16 * 8;
    GYRE_UNROLL for (unsigned k = 0; k < factor_stage<T, AlongA>::depth; k += 16) {
      simt::fragment_a from_a[2];
      GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {  // matrices: rows 0 and 8, then depth 8
        const auto m = load<AlongA>(a, first_row() + i * 16 + low, k + high, line);
        from_a[i] = {{m.part[0], m.part[1], m.part[2], m.part[3]}};
      }
      GYRE_UNROLL for (unsigned j = 0; j < 4; j += 2) {  // matrices: depth 0 and 8, then columns 8
        const auto m = load<AlongB>(b, first_column() + j * 8 + high, k + low, line);
        GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {
          simt::multiply_bf16(sum[i][j], from_a[i], {{m.part[0], m.part[1]}});
          simt::multiply_bf16(sum[i][j + 1], from_a[i], {{m.part[2], m.part[3]}});
        }
      }
    }
  }

 private:
  GYRE_DEVICE static unsigned first_row() { return threadIdx.x / (2 * warp_lanes) * warp_tile; }
  GYRE_DEVICE static unsigned first_column() { return threadIdx.x / warp_lanes % 2 * warp_tile; }
  /// Four 8 x 8 matrices whose elements are pairs along the depth; `outer` and `k` are where the lane's matrix begins.
  template <consecutive Along>
  GYRE_DEVICE static simt::loaded_matrices<4> load(const factor_stage<T, Along>& stage, unsigned outer, unsigned k,
                                                   unsigned line) {
    if constexpr (Along == consecutive::depth) return simt::load_matrices<4>(&stage.at[outer + line][k]);
    return simt::load_matrices<4, true>(&stage.at[k + line][outer]);
  }
};

/// The block's sums over `depth`. Every thread of the block calls it, once.
template <class T, consecutive AlongA, consecutive AlongB>
GYRE_DEVICE product_sums<T, AlongA, AlongB> multiply_tile(product_factor<T> a, product_factor<T> b, index depth) {
  struct stages {
    factor_stage<T, AlongA> a[product_stages];
    factor_stage<T, AlongB> b[product_stages];
  };
  GYRE_SHARED(stages, shared);
  constexpr index step_depth = factor_stage<T, AlongA>::depth;
  const index steps = (depth + step_depth - 1) / step_depth;
  const auto copy = [&](index step) {
    if (step < steps) {
      shared.a[step % product_stages].copy(a, step * step_depth, depth - step * step_depth);
      shared.b[step % product_stages].copy(b, step * step_depth, depth - step * step_depth);
    }
    __pipeline_commit();  // without copies too: the wait counts
  };
  product_sums<T, AlongA, AlongB> sums;
  GYRE_UNROLL for (unsigned step = 0; step + 1 < product_stages; ++step) copy(step);
  for (index step = 0; step < steps; ++step) {
    __pipeline_wait_prior(product_stages - 2);
    __syncthreads();  // what all have copied is there, and all are done with the stage that is copied next
    copy(step + product_stages - 1);
    sums.add(shared.a[step % product_stages], shared.b[step % product_stages]);
  }
  return sums;
}

/// Calls store(row, column, sum) for the thread's sums within `rows` and `columns` of the tile.
template <class Sums, class Store>
GYRE_DEVICE void store_tile(const Sums& sums, index rows, index columns, Store store) {
  GYRE_UNROLL for (unsigned i = 0; i < Sums::down; ++i)
      GYRE_UNROLL for (unsigned j = 0; j < Sums::across; ++j) if (Sums::row(i) < rows && Sums::column(j) < columns)
          store(Sums::row(i), Sums::column(j), sums.value(i, j));
}

}  // namespace detail

GYRE_END
