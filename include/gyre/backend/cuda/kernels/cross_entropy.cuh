// Cross-entropy of rows of logits, which their gradient replaces. Bytes floor: the logits read once, and written once with the
// gradient; here they are read twice, the second time from caches as far as the rows in progress fit there.
#pragma once

#include <cmath>
#include <limits>

#include <gyre/backend/cuda/kernels/packs.cuh>

GYRE_BEGIN

namespace detail {

/// Threads of a row's block. Of long rows two blocks fill a processor: then so few rows are in progress at once that their
/// second reading finds them in the caches (2 blocks on each of 132 processors: 34 MB in bf16 for a vocabulary of 65,536, of an
/// H100's 50).
inline constexpr unsigned cross_entropy_threads = 128, cross_entropy_threads_of_long_rows = 768;
/// Blocks of a processor that registers are kept for: in float 1,536 threads, which are all that compute capabilities 8.6, 8.9
/// and 12 have, where ptxas refuses to keep registers for more; in double that many would spill.
template <unsigned Threads, class S>
inline constexpr unsigned cross_entropy_blocks = sizeof(S) == 4 ? 1536 / Threads : 1;
inline constexpr index cross_entropy_long_row = 4096;  // elements

/// Calls f(at, pack) for all elements of a row, in packs but for those before the first whole one and behind the last: `at` is
/// the pack's first element. Each thread gets the same packs in every call. f may change what it is given; `Write`: that is
/// stored.
template <unsigned Threads, bool Write, class T, class F>
GYRE_DEVICE void for_packs_of_row(T* row, index cols, F f) {
  constexpr int lanes = pack_width<T>;
  const auto head =
      static_cast<index>((0 - reinterpret_cast<std::uintptr_t>(row) / sizeof(T)) % lanes);  // before the first pack
  const index packs = (cols - head) / lanes;
  const auto visit = [&](index at, auto one) {
    auto* const place = reinterpret_cast<decltype(one)*>(row + at);
    one = *place;
    f(at, one.at);
    if constexpr (Write) *place = one;
  };
  const auto thread = static_cast<index>(threadIdx.x);
  for (index n = thread; n < packs; n += static_cast<index>(Threads)) visit(head + n * lanes, pack<T, lanes>());
  const index ends = cols - packs * lanes;  // elements outside of packs
  if (thread < ends) visit(thread < head ? thread : thread + packs * lanes, pack<T, 1>());
}

/// A block for each row.
template <unsigned Threads, class T, class S>
GYRE_KERNEL void __launch_bounds__(Threads, cross_entropy_blocks<Threads, S>)
    cross_entropy_rows(matrix_view<T> logits, const token* targets, S scale, S* losses, bool gradient) {
  const auto i = static_cast<index>(blockIdx.x);
  T* const row = logits[i];
  const token target = targets[i];
  if (target < 0) {
    if (threadIdx.x == 0) losses[i] = S(0);
    if (gradient)
      for (index v = static_cast<index>(threadIdx.x); v < logits.cols; v += static_cast<index>(Threads)) row[v] = narrow<T>(0);
    return;
  }
  // The sum of exp(z - top), top the largest so far. It begins at the least finite number, whose distance to itself is 0, and
  // not at -infinity; NaN is never the largest, but in the sum.
  S top = std::numeric_limits<S>::lowest(), sum(0);
  const auto take = [&](index, const auto& z) {
    S larger = top;
    GYRE_UNROLL for (const T& each : z) {
      const S value = widen(each);
      larger = value > larger ? value : larger;
    }
    if (larger > top) {
      sum *= std::exp(top - larger);
      top = larger;
    }
    GYRE_UNROLL for (const T& each : z) sum += std::exp(S(widen(each)) - top);
  };
  for_packs_of_row<Threads, false>(row, logits.cols, take);
  const S picked = threadIdx.x == 0 ? S(widen(row[target])) : S(0);  // before another thread overwrites it
  const S block_top = block_fold<Threads>(top, std::numeric_limits<S>::lowest(), [](S x) { return warp_max(x); });
  const S total = block_sum<Threads>(sum * std::exp(top - block_top));
  if (threadIdx.x == 0) losses[i] = std::log(total) + block_top - picked;
  if (!gradient) return;
  const S factor = scale / total;
  const auto turn = [&](index at, auto& z) {
    GYRE_UNROLL for (T& each : z) {
      const S share = factor * std::exp(S(widen(each)) - block_top);
      each = narrow<T>(at++ == target ? share - scale : share);
    }
  };
  for_packs_of_row<Threads, true>(row, logits.cols, turn);
}

}  // namespace detail

GYRE_END
