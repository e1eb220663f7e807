// Sums over long vectors, in double and in a fixed order: each block sums a chunk, then one block sums the chunks.
#pragma once

#include <gyre/backend/cuda/kernels/packs.cuh>

GYRE_BEGIN

namespace detail {

inline constexpr unsigned sum_threads = 256;
/// Packs of a thread: long enough that the sums of chunks, which one block adds, are few (61,000 for 1e9 floats).
inline constexpr int sum_packs = 16;

/// Scalars of a block. Does not depend on the device, so neither does the sum.
template <class T>
inline constexpr index sum_chunk = static_cast<index>(sum_threads) * sum_packs* pack_width<T>;

/// sums[b] = sum of term(at, left) over the packs of chunk b: `at` is the pack's first scalar, `left` how many there are from
/// it on (none or less: the term is 0).
template <bool Wide, class T, class Term>
GYRE_KERNEL void __launch_bounds__(sum_threads) sum_of_chunks(index count, Term term, double* sums) {
  const index first = static_cast<index>(blockIdx.x) * sum_chunk<T>;
  double sum = 0;
  for (int n = 0; n < sum_packs; ++n) {
    const index at = first + (n * static_cast<index>(sum_threads) + static_cast<index>(threadIdx.x)) * pack_width<T>;
    sum += term.template operator()<Wide>(at, count - at);
  }
  sum = block_sum<sum_threads>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
/// to[0] = end(sums[0] + ... + sums[chunks - 1]), by one block.
template <class S, class End>
GYRE_KERNEL void __launch_bounds__(sum_threads) sum_of_sums(index chunks, const double* sums, End end, S* to) {
  double sum = 0;
  for (index n = static_cast<index>(threadIdx.x); n < chunks; n += static_cast<index>(sum_threads)) sum += sums[n];
  sum = block_sum<sum_threads>(sum);
  if (threadIdx.x == 0) to[0] = static_cast<S>(end(sum));
}
/// The end of a sum that is wanted as it is.
struct whole_sum {
  GYRE_DEVICE double operator()(double sum) const { return sum; }
};

/// Numbers, or their squares.
template <class T, bool Squared>
struct number_term {
  const T* x;
  template <bool Wide>
  GYRE_DEVICE double operator()(index at, index left) const {
    compute_t<T> value[pack_width<T>];
    load_lanes<Wide>(x + at, left, value);
    double sum = 0;
    GYRE_UNROLL for (const compute_t<T> each : value) {
      const double number = static_cast<double>(each);
      sum += Squared ? number * number : number;
    }
    return sum;
  }
};

template <class T>
index sum_chunks(index count) {
  return (count + sum_chunk<T> - 1) / sum_chunk<T>;
}
/// to[0] = end(the sum of all terms); `sums` (sum_chunks).
template <class T, class Device, class Term, class End, class S>
void sum_up(Device& device, double* sums, bool wide, index count, Term term, End end, S* to) {
  const dim3 chunks = blocks_for(count, static_cast<unsigned>(sum_chunk<T>));
  simt::launch(wide ? sum_of_chunks<true, T, Term> : sum_of_chunks<false, T, Term>, chunks, sum_threads, 0, device.stream(),
               count, term, sums);
  simt::launch(sum_of_sums<S, End>, 1, sum_threads, 0, device.stream(), static_cast<index>(chunks.x),
               static_cast<const double*>(sums), end, to);
}

}  // namespace detail

GYRE_END
