// Routing of rows to experts: who is chosen, with which gates, and the gradient of the gates. A warp for every row.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <gyre/backend/cuda/kernels/device.cuh>

GYRE_BEGIN

namespace detail {

// Four rows: a row of scores is short, and blocks of few warps fill a multiprocessor evenly.
inline constexpr unsigned route_threads = 128;
// Scores of a row that a lane keeps in registers through the search: up to 32, 128 or 512 experts. Beyond, they are read again for
// every step, from the first-level cache.
inline constexpr unsigned route_held[] = {1, 4, 16};

/// sigmoid(x) / exp(shift) for shift = min(largest x of a row, 0): the largest has at least 1/2, so that sums over a row are not 0
/// however negative its logits. Divided by the sum it is exp(logsigmoid(x) - logsumexp(logsigmoid)).
template <class S>
GYRE_DEVICE S router_sigmoid(S x, S shift) {
  const S below = x < 0 ? x : S(0), size = x < 0 ? -x : x;
  return std::exp(below - shift) / (S(1) + std::exp(-size));
}
/// What router_sigmoid is shifted by.
template <class S>
GYRE_DEVICE S router_shift(S largest) {
  return largest < 0 ? largest : S(0);
}

/// Numbers as unsigned integers of the same order: 0 is below all of them, -0 equals 0, NaN counts as -infinity.
template <class S>
using route_key = std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>;
template <class S>
GYRE_DEVICE route_key<S> route_key_of(S x) {
  using key = route_key<S>;
  constexpr key sign = key{1} << (8 * sizeof(S) - 1);
  if (x == 0) x = 0;
  if (x != x) x = -std::numeric_limits<S>::infinity();
  const key bits = std::bit_cast<key>(x);
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

template <class T, class S>
struct route_scores {
  matrix_view<const T> scores;  // (rows, experts)
  const T* bias;                // (experts), null: none
  S scale;

  GYRE_DEVICE S logit(index row, index expert) const { return scale * static_cast<S>(widen(scores[row][expert])); }
  /// By what experts are chosen; one rounding, so that equal scores tie whatever a compiler makes of it. 0 behind the row.
  GYRE_DEVICE route_key<S> key(index row, index expert) const {
    if (expert >= scores.cols) return 0;
    if (bias == nullptr) return route_key_of(logit(row, expert));
    return route_key_of(std::fma(scale, static_cast<S>(widen(scores[row][expert])), static_cast<S>(widen(bias[expert]))));
  }
};

/// A lane's keys of a row: those of experts lane, lane + 32, ..
template <unsigned Held, class T, class S>
struct route_row {
  const route_scores<T, S>& from;
  index row;
  unsigned lane;
  route_key<S> held[Held];

  GYRE_DEVICE route_row(const route_scores<T, S>& from_, index row_, unsigned lane_) : from(from_), row(row_), lane(lane_) {
    GYRE_UNROLL for (unsigned n = 0; n < Held; ++n) held[n] = from.key(row, expert(n));
  }
  GYRE_DEVICE index expert(index n) const { return n * static_cast<index>(warp_lanes) + static_cast<index>(lane); }
  /// f(key, expert) for each of them, the same number of times in every lane.
  template <class F>
  GYRE_DEVICE void each(F f) const {
    GYRE_UNROLL for (unsigned n = 0; n < Held; ++n) f(held[n], expert(n));
  }
};
template <class T, class S>
struct route_row<0, T, S> {
  const route_scores<T, S>& from;
  index row;
  unsigned lane;

  GYRE_DEVICE route_row(const route_scores<T, S>& from_, index row_, unsigned lane_) : from(from_), row(row_), lane(lane_) {}
  template <class F>
  GYRE_DEVICE void each(F f) const {
    for (index first = 0; first < from.scores.cols; first += static_cast<index>(warp_lanes)) {
      const index expert = first + static_cast<index>(lane);
      f(from.key(row, expert), expert);
    }
  }
};

/// Chooses by bisection for the smallest key that is chosen, bit after bit, which takes as many steps as tell it from its
/// neighbours, a dozen for common scores, however many are chosen.
template <unsigned Held, class T, class S>
GYRE_KERNEL void __launch_bounds__(route_threads)
    choose_experts(route_scores<T, S> from, index active, std::int32_t* chosen, S* logits, S* gates) {
  using key = route_key<S>;
  const index row = thread_number() / static_cast<index>(warp_lanes);
  if (row >= from.scores.rows) return;
  const unsigned lane = threadIdx.x % warp_lanes, before = (1u << lane) - 1, wanted = static_cast<unsigned>(active);
  const route_row<Held, T, S> keys(from, row, lane);

  key limit = 0;       // at least `wanted` keys are not below it
  unsigned above = 0;  // keys above those that share the limit's leading bits
  for (key bit = key{1} << (8 * sizeof(key) - 1); bit != 0; bit >>= 1) {
    const key tried = limit | bit;
    unsigned mine = 0;
    keys.each([&](key k, index) { mine += k >= tried ? 1u : 0u; });
    const unsigned count = __reduce_add_sync(whole_warp, mine);
    if (count < wanted) {
      above = count;
    } else {
      limit = tried;
      if (count == wanted) break;
    }
  }

  // All keys above the limit, and of those that equal it the first, as many as are left.
  const index at = row * active;
  unsigned slots = 0, equals = wanted - above;
  keys.each([&](key k, index expert) {
    const unsigned ties = __ballot_sync(whole_warp, k == limit);
    const bool taken = k > limit || (k == limit && static_cast<unsigned>(__popc(ties & before)) < equals);
    const unsigned all = __ballot_sync(whole_warp, taken);
    if (taken) {
      const index slot = at + static_cast<index>(slots) + __popc(all & before);
      chosen[slot] = static_cast<std::int32_t>(expert);
      logits[slot] = from.logit(row, expert);
    }
    slots += static_cast<unsigned>(__popc(all));
    equals -= min(equals, static_cast<unsigned>(__popc(ties)));
  });
  __syncwarp();  // logits

  if (active == 1) {
    if (lane == 0) gates[at] = from.scores.cols == 1 ? S(1) : router_sigmoid(logits[at], S(0));
    return;
  }
  S top = -std::numeric_limits<S>::infinity();
  for (index j = lane; j < active; j += static_cast<index>(warp_lanes)) {
    const S x = logits[at + j];
    top = x > top ? x : top;  // a NaN need not come through: the sum has it
  }
  const S shift = router_shift(warp_max(top));
  S sum = 0;
  for (index j = lane; j < active; j += static_cast<index>(warp_lanes)) {
    const S gate = router_sigmoid(logits[at + j], shift);
    gates[at + j] = gate;
    sum += gate;
  }
  const S factor = S(1) / warp_sum(sum);
  for (index j = lane; j < active; j += static_cast<index>(warp_lanes)) gates[at + j] *= factor;
}

template <class T, class S>
GYRE_KERNEL void __launch_bounds__(route_threads)
    choose_experts_backward(const S* logits, const S* gates, const std::int32_t* chosen, const S* d_gates, S scale,
                            index active, matrix_view<T> d_scores) {
  const index row = thread_number() / static_cast<index>(warp_lanes);
  if (row >= d_scores.rows) return;
  const index lane = threadIdx.x % warp_lanes, at = row * active;
  T* const to = d_scores[row];
  for (index e = lane; e < d_scores.cols; e += static_cast<index>(warp_lanes)) to[e] = narrow<T>(0);
  if (d_scores.cols == 1) return;
  S mean = 0;
  if (active > 1) {
    for (index j = lane; j < active; j += static_cast<index>(warp_lanes)) mean += gates[at + j] * d_gates[at + j];
    mean = warp_sum(mean);
  }
  __syncwarp();  // zeros come first
  for (index p = at + lane; p < at + active; p += static_cast<index>(warp_lanes))
    to[chosen[p]] =
        narrow<T>(static_cast<compute_t<T>>(scale * gates[p] * (d_gates[p] - mean) * router_sigmoid(-logits[p], S(0))));
}

}  // namespace detail

GYRE_END
