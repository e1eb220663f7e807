// Losses of a router, sums over the rows of each sequence: how evenly it uses its experts, and how large its logits are.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include <gyre/backend/cuda/kernels/route.cuh>
#include <gyre/core/layout.hpp>
#include <gyre/ops/routing.hpp>

GYRE_BEGIN

namespace detail {

inline constexpr unsigned router_loss_threads = 256;

/// What the losses are of; counts (sequences, experts): how many rows of a sequence chose an expert.
template <class T, class S>
struct router_rows {
  matrix_view<const T> scores;
  S scale, balance, z;
  index active;
  const sequence_span* sequences;
  index sequence_count;
  std::int32_t* counts;

  /// The sequence of a row: the last that begins at it or before.
  GYRE_DEVICE index sequence_of(index row) const {
    index first = 0, last = sequence_count;  // it is among [first, last)
    while (last - first > 1) {
      const index middle = (first + last) / 2;
      if (sequences[middle].begin <= row)
        first = middle;
      else
        last = middle;
    }
    return first;
  }
};

/// A thread for every pair of a row and an expert.
template <class T, class S>
GYRE_KERNEL void __launch_bounds__(router_loss_threads) count_chosen(router_rows<T, S> r, const std::int32_t* chosen) {
  const index pair = thread_number();
  if (pair >= r.scores.rows * r.active) return;
  atomicAdd(&r.counts[r.sequence_of(pair / r.active) * r.scores.cols + chosen[pair]], 1);
}

/// One row as its losses see it, by a whole warp. Reads the row twice, from the cache the second time.
template <class T, class S>
struct router_row_terms {
  const T* x;
  const std::int32_t* counts;  // of the row's sequence
  index experts, lane;
  S scale, even;       // even: what makes a count f_e, E / (active * tokens)
  S top, shift;        // the largest logit, and what router_sigmoid is shifted by
  S sigmoids, shares;  // sums of router_sigmoid, and of that times f_e
  S exponentials;      // sum of exp(logit - top)

  GYRE_DEVICE router_row_terms(const router_rows<T, S>& r, index row)
      : x(r.scores[row]), experts(r.scores.cols), lane(threadIdx.x % warp_lanes), scale(r.scale) {
    const index sequence = r.sequence_of(row);
    counts = r.counts + sequence * experts;
    even = static_cast<S>(experts) / static_cast<S>(r.active * r.sequences[sequence].count);
    top = -std::numeric_limits<S>::infinity();
    for (index e = lane; e < experts; e += static_cast<index>(warp_lanes)) {
      const S at = logit(e);
      top = at > top ? at : top;  // a NaN need not come through: the sums have it
    }
    top = warp_max(top);
    shift = router_shift(top);
    sigmoids = shares = exponentials = 0;
    for (index e = lane; e < experts; e += static_cast<index>(warp_lanes)) {
      const S at = logit(e), weight = router_sigmoid(at, shift);
      sigmoids += weight;
      shares += weight * share(e);
      exponentials += std::exp(at - top);
    }
    sigmoids = warp_sum(sigmoids), shares = warp_sum(shares), exponentials = warp_sum(exponentials);
  }
  GYRE_DEVICE S logit(index e) const { return scale * static_cast<S>(widen(x[e])); }
  GYRE_DEVICE S share(index e) const { return even * static_cast<S>(counts[e]); }
  GYRE_DEVICE S mean_share() const { return shares / sigmoids; }
  GYRE_DEVICE S total() const { return top + std::log(exponentials); }
};

template <class T, class S>
GYRE_KERNEL void __launch_bounds__(router_loss_threads) router_row_losses(router_rows<T, S> r, S* losses) {
  const index row = thread_number() / static_cast<index>(warp_lanes);
  if (row >= r.scores.rows) return;
  const router_row_terms<T, S> terms(r, row);
  if (terms.lane == 0) losses[row] = r.balance * terms.mean_share() + r.z * terms.total() * terms.total();
}

/// A block for every sequence.
template <class S>
GYRE_KERNEL void __launch_bounds__(router_loss_threads)
    sum_of_sequences(const S* of_rows, const sequence_span* sequences, S* losses) {
  const sequence_span& s = sequences[blockIdx.x];
  S sum = 0;
  for (index i = threadIdx.x; i < s.count; i += static_cast<index>(router_loss_threads)) sum += of_rows[s.begin + i];
  sum = block_sum<router_loss_threads>(sum);
  if (threadIdx.x == 0) losses[blockIdx.x] = sum;
}

template <class T, class S>
GYRE_KERNEL void __launch_bounds__(router_loss_threads)
    router_row_losses_backward(router_rows<T, S> r, S factor, matrix_view<T> d_scores) {
  const index row = thread_number() / static_cast<index>(warp_lanes);
  if (row >= r.scores.rows) return;
  const router_row_terms<T, S> terms(r, row);
  const S mean = terms.mean_share(), by_balance = factor * r.scale * r.balance / terms.sigmoids,
          by_z = factor * r.scale * 2 * r.z * terms.total() / terms.exponentials;
  T* const to = d_scores[row];
  for (index e = terms.lane; e < terms.experts; e += static_cast<index>(warp_lanes)) {
    const S x = terms.logit(e);
    const S d = by_balance * router_sigmoid(x, terms.shift) * (terms.share(e) - mean) * router_sigmoid(-x, S(0)) +
                by_z * std::exp(x - terms.top);
    to[e] = narrow<T>(static_cast<compute_t<T>>(static_cast<S>(widen(to[e])) + d));
  }
}

}  // namespace detail

GYRE_END
