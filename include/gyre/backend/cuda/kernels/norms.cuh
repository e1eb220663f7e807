// Kernels of norms: one row for each warp, or for each block where rows are long.
#pragma once

#include <algorithm>
#include <cmath>

#include <gyre/backend/cuda/kernels/packs.cuh>

GYRE_BEGIN

namespace detail {

/// Packs of a row that a thread keeps in registers, so that the row is read once: 16 elements, in 16 registers at most. The
/// backward pass has two such rows, and sums of 16 columns. What is beyond is read again.
template <int Width>
inline constexpr int kept_packs = (std::min)(16 / Width, 4);
/// Threads of a row: a warp, which needs no barrier, as long as it can keep the row; 128; else 512.
inline constexpr unsigned short_row_threads = warp_lanes, row_threads = 128, long_row_threads = 512;
/// Threads of a block that has a row for every `Threads`.
template <unsigned Threads>
inline constexpr unsigned threads_of_rows = Threads > row_threads ? Threads : row_threads;
/// Blocks that a multiprocessor of 65536 registers must be able to hold. Said, because without a number the compiler spills a
/// few registers to make room for more blocks. Numbers of registers: those that sm_80 needs without spilling.
template <unsigned Threads, unsigned Registers>
inline constexpr unsigned blocks_of_rows = (std::max)(65536 / Registers / threads_of_rows<Threads>, 1u);

/// Calls f(k, column) for every pack of a row that is this thread's; the first ones are numbered, all others have kept_packs.
template <unsigned Threads, int Width, class F>
GYRE_DEVICE void for_own_packs(index cols, F f) {
  constexpr int step = static_cast<int>(Threads) * Width;
  const int first = static_cast<int>(threadIdx.x % Threads) * Width;
  GYRE_UNROLL for (int k = 0; k < kept_packs<Width>; ++k) if (first + k * step < cols) f(k, index{first + k * step});
  for (index j = first + kept_packs<Width> * step; j < cols; j += step) f(kept_packs<Width>, j);
}
template <unsigned Threads, class C>
GYRE_DEVICE C row_sum(C x) {
  if constexpr (Threads == warp_lanes)
    return warp_sum(x);
  else
    return block_sum<Threads>(x);
}
template <unsigned Threads>
GYRE_DEVICE index row_of_thread() {
  return static_cast<index>(blockIdx.x) * (threads_of_rows<Threads> / Threads) + threadIdx.x / Threads;
}
template <class S>
GYRE_DEVICE S square_root(S x) {
  return std::sqrt(x);
}

/// y = norm of x, or of sum = x + f where Add.
template <unsigned Threads, int Width, bool Add, class T, class S>
GYRE_KERNEL void __launch_bounds__(threads_of_rows<Threads>, blocks_of_rows<Threads, 64>)
    normalise_rows(matrix_view<const T> x, matrix_view<const T> f, const T* gain, S eps, matrix_view<T> sum, matrix_view<T> y,
                   S* rstd) {
  const index row = row_of_thread<Threads>();
  if (row >= x.rows) return;
  pack<T, Width> kept[kept_packs<Width>];
  S squares(0);
  for_own_packs<Threads, Width>(x.cols, [&](int k, index j) {
    pack<T, Width> p = load_pack<Width>(x[row] + j);
    if constexpr (Add) {
      const pack<T, Width> q = load_pack<Width>(f[row] + j);
      GYRE_UNROLL for (int v = 0; v < Width; ++v) p.at[v] = narrow<T>(widen(p.at[v]) + widen(q.at[v]));
      store_pack(sum[row] + j, p);
    }
    if (k < kept_packs<Width>) kept[k] = p;
    GYRE_UNROLL for (int v = 0; v < Width; ++v) squares += S(widen(p.at[v])) * S(widen(p.at[v]));
  });
  const S factor = S(1) / square_root(row_sum<Threads>(squares) / static_cast<S>(x.cols) + eps);
  if (threadIdx.x % Threads == 0) rstd[row] = factor;
  const T* const again = Add ? sum[row] : x[row];
  for_own_packs<Threads, Width>(x.cols, [&](int k, index j) {
    pack<T, Width> p = k < kept_packs<Width> ? kept[k] : load_pack<Width>(again + j);
    GYRE_UNROLL for (int v = 0; v < Width; ++v) p.at[v] = narrow<T>(static_cast<compute_t<T>>(S(widen(p.at[v])) * factor));
    if (gain != nullptr) {
      const pack<T, Width> g = load_parameters<Width>(gain + j);
      GYRE_UNROLL for (int v = 0; v < Width; ++v) p.at[v] = narrow<T>(widen(p.at[v]) * widen(g.at[v]));
    }
    store_pack(y[row] + j, p);
  });
}

/// dx += rstd (gain dy - unit mean(gain dy unit)), unit = x rstd, of `rows_of_block` rows in every block. Where Sum, no row has
/// more than the packs that are kept, and row blockIdx.x of `partial` is the sum of dy unit over the block's rows.
template <unsigned Threads, int Width, bool Sum, class T, class G, class S>
GYRE_KERNEL void __launch_bounds__(threads_of_rows<Threads>, blocks_of_rows<Threads, 168>)
    normalise_rows_backward(matrix_view<const T> x, const T* gain, const S* rstd, matrix_view<const T> dy, matrix_view<T> dx,
                            index rows_of_block, G* partial) {
  constexpr unsigned at_once = threads_of_rows<Threads> / Threads;
  const index begin = static_cast<index>(blockIdx.x) * rows_of_block;
  const index end = begin + rows_of_block < x.rows ? begin + rows_of_block : x.rows;
  pack<G, Width> sums[kept_packs<Width>] = {};
  for (index row = begin + threadIdx.x / Threads; row < end; row += at_once) {
    const S factor = rstd[row];
    const T *const of_x = x[row], *const of_dy = dy[row];
    T* const of_dx = dx[row];
    pack<T, Width> kept_x[kept_packs<Width>], kept_dy[kept_packs<Width>];
    // Of one pack: gain dy, and x.
    const auto gained = [&](const pack<T, Width>& d, index j) {
      pack<S, Width> g;
      GYRE_UNROLL for (int v = 0; v < Width; ++v) g.at[v] = S(widen(d.at[v]));
      if (gain != nullptr) {
        const pack<T, Width> by = load_parameters<Width>(gain + j);
        GYRE_UNROLL for (int v = 0; v < Width; ++v) g.at[v] *= S(widen(by.at[v]));
      }
      return g;
    };
    S products(0);
    for_own_packs<Threads, Width>(x.cols, [&](int k, index j) {
      const pack<T, Width> p = load_pack<Width>(of_x + j), d = load_pack<Width>(of_dy + j);
      if (k < kept_packs<Width>) kept_x[k] = p, kept_dy[k] = d;
      const pack<S, Width> g = gained(d, j);
      GYRE_UNROLL for (int v = 0; v < Width; ++v) {
        const S unit = S(widen(p.at[v])) * factor;
        products += g.at[v] * unit;
        if constexpr (Sum)
          if (k < kept_packs<Width>) sums[k].at[v] += static_cast<G>(S(widen(d.at[v])) * unit);
      }
    });
    const S mean = row_sum<Threads>(products) / static_cast<S>(x.cols);
    for_own_packs<Threads, Width>(x.cols, [&](int k, index j) {
      const pack<T, Width> p = k < kept_packs<Width> ? kept_x[k] : load_pack<Width>(of_x + j);
      const pack<S, Width> g = gained(k < kept_packs<Width> ? kept_dy[k] : load_pack<Width>(of_dy + j), j);
      pack<T, Width> to = load_pack<Width>(of_dx + j);
      GYRE_UNROLL for (int v = 0; v < Width; ++v) {
        const S change = factor * (g.at[v] - mean * S(widen(p.at[v])) * factor);
        to.at[v] = narrow<T>(widen(to.at[v]) + static_cast<compute_t<T>>(change));
      }
      store_pack(of_dx + j, to);
    });
  }
  if constexpr (Sum) {
    G* const to = partial + static_cast<index>(blockIdx.x) * x.cols;
    if constexpr (at_once == 1) {
      for_own_packs<Threads, Width>(x.cols, [&](int k, index j) {
        if (k < kept_packs<Width>) store_pack(to + j, sums[k]);
      });
    } else {
      using shared_pack = pack<G, Width>;
      GYRE_SHARED(shared_pack[at_once][kept_packs<Width> * Threads], parts);
      GYRE_UNROLL for (int k = 0; k < kept_packs<Width>; ++k)
          parts[threadIdx.x / Threads][static_cast<unsigned>(k) * Threads + threadIdx.x % Threads] = sums[k];
      __syncthreads();
      constexpr unsigned width = Width;
      for (unsigned j = threadIdx.x; j < x.cols; j += threads_of_rows<Threads>) {
        G sum = parts[0][j / width].at[j % width];
        for (unsigned n = 1; n < at_once; ++n) sum += parts[n][j / width].at[j % width];
        to[j] = sum;
      }
    }
  }
}

/// dy unit, whose sum over rows is the gradient of the gain.
template <class T, class G, class S>
struct gain_terms {
  matrix_view<const T> x, dy;
  const S* rstd;
  template <int Width>
  GYRE_DEVICE pack<G, Width> operator()(index i, index j) const {
    const pack<T, Width> p = load_pack<Width>(x[i] + j), d = load_pack<Width>(dy[i] + j);
    const S factor = rstd[i];
    pack<G, Width> terms;
    GYRE_UNROLL for (int v = 0; v < Width; ++v) terms.at[v] = static_cast<G>(S(widen(d.at[v])) * (S(widen(p.at[v])) * factor));
    return terms;
  }
};

/// Every row of y to mean 0 and variance 1.
template <unsigned Threads, int Width, class T>
GYRE_KERNEL void __launch_bounds__(threads_of_rows<Threads>, blocks_of_rows<Threads, 128>) standardise_rows(matrix_view<T> y) {
  using C = compute_t<T>;
  const index row = row_of_thread<Threads>();
  if (row >= y.rows) return;
  pack<T, Width> kept[kept_packs<Width>];
  C sum(0), squares(0);
  for_own_packs<Threads, Width>(y.cols, [&](int k, index j) {
    const pack<T, Width> p = load_pack<Width>(y[row] + j);
    if (k < kept_packs<Width>) kept[k] = p;
    GYRE_UNROLL for (int v = 0; v < Width; ++v) sum += widen(p.at[v]);
  });
  const C count = static_cast<C>(y.cols), mean = row_sum<Threads>(sum) / count;
  for_own_packs<Threads, Width>(y.cols, [&](int k, index j) {
    const pack<T, Width> p = k < kept_packs<Width> ? kept[k] : load_pack<Width>(y[row] + j);
    GYRE_UNROLL for (int v = 0; v < Width; ++v) squares += (widen(p.at[v]) - mean) * (widen(p.at[v]) - mean);
  });
  const C scale = C(1) / square_root(row_sum<Threads>(squares) / count);
  for_own_packs<Threads, Width>(y.cols, [&](int k, index j) {
    pack<T, Width> p = k < kept_packs<Width> ? kept[k] : load_pack<Width>(y[row] + j);
    GYRE_UNROLL for (int v = 0; v < Width; ++v) p.at[v] = narrow<T>((widen(p.at[v]) - mean) * scale);
    store_pack(y[row] + j, p);
  });
}

/// change (rows, 2): the length of x - before, and that of x.
template <unsigned Threads, int Width, class T, class S>
GYRE_KERNEL void __launch_bounds__(threads_of_rows<Threads>, blocks_of_rows<Threads, 64>)
    change_of_rows(matrix_view<const T> x, matrix_view<const T> before, S* change) {
  const index row = row_of_thread<Threads>();
  if (row >= x.rows) return;
  S moved(0), size(0);
  for_own_packs<Threads, Width>(x.cols, [&](int, index j) {
    const pack<T, Width> a = load_pack<Width>(x[row] + j), b = load_pack<Width>(before[row] + j);
    GYRE_UNROLL for (int v = 0; v < Width; ++v) {
      const S now = S(widen(a.at[v])), d = now - S(widen(b.at[v]));
      moved += d * d;
      size += now * now;
    }
  });
  moved = row_sum<Threads>(moved);
  size = row_sum<Threads>(size);
  if (threadIdx.x % Threads > 0) return;
  change[2 * row] = square_root(moved);
  change[2 * row + 1] = square_root(size);
}

}  // namespace detail

GYRE_END
