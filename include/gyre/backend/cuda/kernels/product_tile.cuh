// A block's part of a matrix product: 64 x 64 sums, whose factors pass through shared memory. Every sum is one chain of
// multiply-adds in the order of the depth (of bf16: of tensor-core steps of 16), so that its bits do not depend on what else is in
// the tile.
#pragma once

#include <type_traits>

#include <gyre/backend/cuda/kernels/device.cuh>

GYRE_BEGIN

namespace detail {

/// Sums down and across a tile; bytes of depth that a stage has of each of them: four 16-byte copies. 128 threads have 32 sums
/// each, and three stages (24 KiB) keep copies of two of them in flight. Not measured on a GPU.
inline constexpr unsigned product_tile = 64, product_stage_bytes = 64, product_threads = 128, product_stages = 3;
/// Blocks of a multiprocessor that registers are shared by: with more of them sums would spill.
template <class T>
inline constexpr unsigned product_blocks = sizeof(T) == 8 ? 2 : 3;

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

/// A stage of a factor in shared memory: `lines` of `width` consecutive scalars. The 16-byte pieces of a line are permuted, so that
/// eight lanes meet no bank twice, be they at eight lines or along one.
template <class T, consecutive Along>
struct factor_stage {
  static constexpr unsigned vector = 16 / sizeof(T), depth = product_stage_bytes / sizeof(T);
  static constexpr unsigned lines = Along == consecutive::depth ? product_tile : depth;
  static constexpr unsigned width = Along == consecutive::depth ? depth : product_tile, pieces = width / vector;
  static constexpr unsigned lines_of_banks = pieces < 8 ? 8 / pieces : 1, permuted = pieces < 8 ? pieces : 8;

  alignas(16) T scalars[lines * width];

  GYRE_DEVICE static unsigned place(unsigned line, unsigned column) {
    return line * width + (column / vector ^ line / lines_of_banks % permuted) * vector + column % vector;
  }

  /// Starts copies of `depth` steps of the factor, of which `left` exist; zeros where there is nothing. Copies have sizes that the
  /// compiler knows: CUDA's function is a switch over them otherwise.
  GYRE_DEVICE void copy(const product_factor<T>& f, index first, index left) {
    const T* const from = f.from + (Along == consecutive::depth ? first : first * f.stride);
    const index real_lines = Along == consecutive::depth ? f.outer : left, real = Along == consecutive::depth ? left : f.outer;
    const auto copy_one = [&](unsigned line, unsigned column, T* to) {
      const bool there = line < real_lines && column < real;
      const T* const source = from + line * f.stride + column;
      if constexpr (sizeof(T) >= 4)
        if (there) return __pipeline_memcpy_async(to, source, sizeof(T));
      *to = there ? *source : narrow<T>(0);
    };
    if (f.aligned) {
      for (unsigned i = threadIdx.x; i < lines * pieces; i += product_threads) {
        const unsigned line = i / pieces, column = i % pieces * vector;
        T* const to = scalars + place(line, column);
        if (line < real_lines && column + vector <= real)
          __pipeline_memcpy_async(to, from + line * f.stride + column, 16);
        else
          GYRE_UNROLL for (unsigned e = 0; e < vector; ++e) copy_one(line, column + e, to + e);
      }
    } else {
      for (unsigned i = threadIdx.x; i < lines * width; i += product_threads)
        copy_one(i / width, i % width, scalars + place(i / width, i % width));
    }
  }
};

/// A thread's sums, 8 down and 4 across, by multiply-adds in registers.
template <class T, consecutive AlongA, consecutive AlongB>
struct product_sums {
  static constexpr unsigned down = 8, across = 4, lanes_down = product_tile / down, lanes_across = product_tile / across;
  static_assert(lanes_down * lanes_across == product_threads);
  static constexpr unsigned vector = factor_stage<T, AlongA>::vector;
  static constexpr unsigned run = AlongB == consecutive::depth ? 1 : vector;  // columns that lie beside each other

  T sum[down][across] = {};

  GYRE_DEVICE static unsigned row(unsigned i) { return place<AlongA, lanes_down>(threadIdx.x / lanes_across, i); }
  GYRE_DEVICE static unsigned column(unsigned j) { return place<AlongB, lanes_across>(threadIdx.x % lanes_across, j); }
  GYRE_DEVICE T value(unsigned i, unsigned j) const { return sum[i][j]; }

  GYRE_DEVICE void add(const factor_stage<T, AlongA>& a, const factor_stage<T, AlongB>& b) {
    GYRE_UNROLL for (unsigned k = 0; k < factor_stage<T, AlongA>::depth; k += vector) {
      T of_b[vector][across];
      for_each_piece<AlongB, lanes_across, across>(b, threadIdx.x % lanes_across, k,
                                                   [&](unsigned step, unsigned j, T x) { of_b[step][j] = x; });
      for_each_piece<AlongA, lanes_down, down>(a, threadIdx.x / lanes_across, k, [&](unsigned step, unsigned i, T x) {
        GYRE_UNROLL for (unsigned j = 0; j < across; ++j) sum[i][j] += x * of_b[step][j];
      });
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
  /// Calls f(step, i, x) for the lane's elements at depths k .. k + vector - 1; ascending in the depth for each i.
  template <consecutive Along, unsigned Lanes, unsigned Each, class F>
  GYRE_DEVICE static void for_each_piece(const factor_stage<T, Along>& stage, unsigned lane, unsigned k, F f) {
    constexpr bool deep = Along == consecutive::depth;
    GYRE_UNROLL for (unsigned n = 0; n < Each; ++n) {  // as many pieces of `vector` as elements
      const unsigned step = deep ? 0 : n / (Each / vector), i = deep ? n : n % (Each / vector) * vector,
                     at = place<Along, Lanes>(lane, i);
      const piece p = *reinterpret_cast<const piece*>(&stage.scalars[deep ? stage.place(at, k) : stage.place(k + step, at)]);
      GYRE_UNROLL for (unsigned e = 0; e < vector; ++e) f(deep ? e : step, deep ? i : i + e, p.at[e]);
    }
  }
};

/// bf16: a warp has 32 x 32 sums in fp32, by tensor cores.
template <consecutive AlongA, consecutive AlongB>
struct product_sums<bfloat16, AlongA, AlongB> {
  using T = bfloat16;
  static constexpr unsigned down = 4, across = 8, run = 2, warp_tile = 32;
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
    if constexpr (Along == consecutive::depth)
      return simt::load_matrices<4>(&stage.scalars[stage.place(outer + line, k)]);
    else
      return simt::load_matrices<4, true>(&stage.scalars[stage.place(k + line, outer)]);
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

/// Where a tile of sums goes: `rows` and `columns` of it exist.
template <class T>
struct product_result {
  T* to;
  index stride, rows, columns;
  bool aligned;  // `to` and rows to 16 bytes
  bool accumulate;
};

template <class T, class Sums>
GYRE_DEVICE void store_tile(const Sums& sums, const product_result<T>& c) {
  constexpr unsigned run = Sums::run;
  using C = compute_t<T>;
  struct alignas(run * sizeof(T)) together {
    T at[run];
  };
  GYRE_UNROLL for (unsigned i = 0; i < Sums::down; ++i) {
    if (Sums::row(i) >= c.rows) continue;
    T* const row = c.to + Sums::row(i) * c.stride;
    GYRE_UNROLL for (unsigned j = 0; j < Sums::across; j += run) {
      const unsigned column = Sums::column(j);
      if (run > 1 && c.aligned && column + run <= c.columns) {
        together all = c.accumulate ? *reinterpret_cast<const together*>(row + column) : together{};
        GYRE_UNROLL for (unsigned e = 0; e < run; ++e) {
          all.at[e] = narrow<T>(widen(all.at[e]) + static_cast<C>(sums.value(i, j + e)));
        }
        *reinterpret_cast<together*>(row + column) = all;
      } else {
        GYRE_UNROLL for (unsigned e = 0; e < run; ++e) {
          if (column + e >= c.columns) continue;
          T& to = row[column + e];
          to = narrow<T>((c.accumulate ? widen(to) : C(0)) + static_cast<C>(sums.value(i, j + e)));
        }
      }
    }
  }
}

}  // namespace detail

GYRE_END
