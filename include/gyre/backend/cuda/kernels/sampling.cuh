// Choice of a token from every row of logits, a block for each, in double. The logits are read up to four times, and the
// weights that they become a few dozen times, from the second-level cache; nothing of a row leaves the device but its token.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gyre/backend/cuda/kernels/device.cuh>

GYRE_BEGIN

namespace detail {

/// Threads of a row's block.
inline constexpr unsigned sampling_threads = 128, sampling_threads_of_long_rows = 512;
inline constexpr index sampling_long_row = 4096;  // tokens

/// The rules of a row.
struct sampling_numbers {
  double inverse_temperature, top_p, min_p, penalty, uniform;
  index top_k, history, history_size;  // top_k: 0 for all; history_size: 0 where nothing reads it
  bool greedy, id_only;
};

/// Doubles of workspace for a row: a weight for every token, and behind them a bit for every token, set in the history.
constexpr index sampling_workspace_of_row(index vocabulary) { return vocabulary + (vocabulary + 63) / 64; }

/// The sum of `x` over a warp's lanes up to this one.
GYRE_DEVICE double sum_up_to_lane(double x) {
  GYRE_UNROLL for (unsigned distance = 1; distance < warp_lanes; distance *= 2) {
    const double other = __shfl_up_sync(whole_warp, x, distance);
    if (threadIdx.x % warp_lanes >= distance) x += other;
  }
  return x;
}

/// The first t of [0, count) with f(t) > 0 at which the sum of f(0) .. f(t) exceeds limit(sum of all); the last with f(t) > 0
/// where rounding lets none exceed it. f is never negative, and somewhere positive. Every warp sums a section, the one that
/// holds the place goes through its own once more. Every thread of the block calls it; what they wrote before may be read by f.
template <unsigned Threads, class F, class Limit>
GYRE_DEVICE index first_beyond(index count, F f, Limit limit) {
  constexpr unsigned warps = Threads / warp_lanes;
  GYRE_SHARED(double[Threads / warp_lanes], sums);
  GYRE_SHARED(index[1], found);
  const unsigned warp = threadIdx.x / warp_lanes, lane = threadIdx.x % warp_lanes;
  constexpr index step = warp_lanes, sections = warps;
  const index size = (count + sections * step - 1) / (sections * step) * step;
  const index first = (std::min)(count, size * static_cast<index>(warp)), end = (std::min)(count, first + size);
  __syncthreads();  // what f reads
  double mine = 0;
  for (index t = first + static_cast<index>(lane); t < end; t += step) mine += f(t);
  mine = warp_sum(mine);
  if (lane == 0) sums[warp] = mine;
  __syncthreads();
  double all = 0, passed = 0, before = 0;
  for (const double sum : sums) all += sum;
  const double bound = limit(all);
  unsigned section = 0;
  for (unsigned w = 0; w < warps && !(bound < passed); ++w)
    if (sums[w] > 0) {
      section = w, before = passed;
      passed += sums[w];
    }
  if (warp == section) {
    index place = 0;
    for (index from = first; from < end; from += step) {
      const index t = from + static_cast<index>(lane);
      const double x = t < end ? f(t) : 0, sum = before + sum_up_to_lane(x);
      const unsigned possible = __ballot_sync(whole_warp, x > 0), beyond = __ballot_sync(whole_warp, x > 0 && bound < sum);
      if (beyond != 0) {
        place = from + __ffs(static_cast<int>(beyond)) - 1;
        break;
      }
      if (possible != 0) place = from + static_cast<index>(warp_lanes) - 1 - __clz(static_cast<int>(possible));
      before = __shfl_sync(whole_warp, sum, warp_lanes - 1);
    }
    if (lane == 0) found[0] = place;
  }
  __syncthreads();
  return found[0];
}

/// How many weights, and their sum.
struct weights_counted {
  index count = 0;
  double sum = 0;
};

/// Sets to 0 the weights but the likeliest: at most `most` of them, with a sum of at most `share`, and at least one; the first
/// of equals. The smallest that stays is found by bisection of its bits, as in route.cuh, until it is told from its neighbours.
template <unsigned Threads, class Each>
GYRE_DEVICE void keep_likeliest(double* weights, index count, double total, index most, double share, Each each) {
  const auto key = [](double weight) { return std::bit_cast<std::uint64_t>(weight); };  // of numbers >= 0: in their order
  const auto from = [&](std::uint64_t least) {
    unsigned number = 0;
    double sum = 0;
    each([&](index t) {
      const double weight = weights[t];
      if (key(weight) < least) return;
      ++number;
      sum += weight;
    });
    return weights_counted{static_cast<index>(block_sum<Threads>(number)), block_sum<Threads>(sum)};
  };
  // Keys from limit + width on all stay; of those in [limit, limit + width) some do; the rest goes. Weights are at most 1.
  std::uint64_t limit = 0, width = std::uint64_t{1} << 62;
  weights_counted at{count, total}, above;
  while (width > 1 && at.count - above.count > 1) {
    width /= 2;
    const weights_counted tried = from(limit + width);
    if (tried.count >= most || tried.sum > share) {
      limit += width;
      at = tried;
    } else {
      above = tried;
    }
  }
  const double equals = static_cast<double>(at.count - above.count);
  double taken =
      std::fmin(std::floor((share - above.sum) / ((at.sum - above.sum) / equals)), static_cast<double>(most - above.count));
  if (above.count == 0) taken = std::fmax(taken, 1.0);
  const auto equal = [=](double weight) { return key(weight) >= limit && key(weight) - limit < width; };
  const index end = taken < equals
                        ? first_beyond<Threads>(
                              count, [=](index t) { return equal(weights[t]) ? 1.0 : 0.0; }, [=](double) { return taken; })
                        : count;
  each([&](index t) {
    const double weight = weights[t];
    if (key(weight) < limit || (equal(weight) && t >= end)) weights[t] = 0;
  });
}

template <unsigned Threads, class S>
GYRE_KERNEL void __launch_bounds__(Threads)
    sample_rows(matrix_view<const S> logits, const sampling_numbers* rows, const token* histories, double* workspace,
                token* chosen, double* log_probabilities) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto row = static_cast<index>(blockIdx.x);
  const index vocabulary = logits.cols;
  const sampling_numbers& rules = rows[row];
  const S* const z = logits[row];
  double* const weights = workspace + row * sampling_workspace_of_row(vocabulary);
  // A thread gets the same tokens each time, so its own weights need no barrier.
  const auto each = [=](auto f) {
    for (index t = static_cast<index>(threadIdx.x); t < vocabulary; t += static_cast<index>(Threads)) f(t);
  };
  const auto largest = [&](auto value) {
    double top = -infinity;
    each([&](index t) {
      const double x = value(t);
      top = x > top || x != x ? x : top;
    });
    return block_fold<Threads>(top, -infinity, [](double x) { return warp_max(x); });
  };
  const auto logit = [=](index t) { return static_cast<double>(widen(z[t])); };

  const double top = largest(logit);
  if (!(top - top == 0)) {  // NaN, or infinite either way
    if (threadIdx.x == 0) chosen[row] = -1, log_probabilities[row] = 0;
    return;
  }
  const bool penalised = rules.history_size > 0;
  const bool plain = !penalised && !rules.greedy && rules.inverse_temperature == 1;
  double total = 0, log_total = 0;
  if (plain || !rules.id_only) {
    each([&](index t) {
      const double weight = std::exp(logit(t) - top);
      total += weight;
      if (plain) weights[t] = weight;
    });
    total = block_sum<Threads>(total);
    log_total = top + std::log(total);
  }
  if (!plain) {
    auto* const seen = reinterpret_cast<unsigned*>(weights + vocabulary);
    if (penalised) {
      for (index n = static_cast<index>(threadIdx.x); n < (vocabulary + 31) / 32; n += static_cast<index>(Threads)) seen[n] = 0;
      __syncthreads();
      for (index n = static_cast<index>(threadIdx.x); n < rules.history_size; n += static_cast<index>(Threads)) {
        const token t = histories[rules.history + n];
        atomicOr(seen + t / 32, 1u << (t % 32));
      }
      __syncthreads();
    }
    const auto changed = [=, &rules](index t) {
      constexpr double most = (std::numeric_limits<double>::max)();
      const double x = logit(t);
      if (!penalised || (seen[t / 32] >> (t % 32) & 1) == 0 || x == -infinity) return x;
      return std::fmax(-most, std::fmin(most, x > 0 ? x / rules.penalty : x * rules.penalty));
    };
    const double new_top = largest(changed);
    total = 0;
    each([&](index t) {
      const double x = changed(t),
                   weight = rules.greedy ? (x == new_top ? 1.0 : 0.0) : std::exp((x - new_top) * rules.inverse_temperature);
      total += weight;
      weights[t] = weight;
    });
    total = block_sum<Threads>(total);
  }

  if (!rules.greedy) {  // whose likeliest tokens have the weight 1, and the first of them is drawn
    if ((rules.top_k > 0 && rules.top_k < vocabulary) || rules.top_p < 1)
      keep_likeliest<Threads>(weights, vocabulary, total, rules.top_k > 0 ? rules.top_k : vocabulary,
                              rules.top_p < 1 ? rules.top_p * total : infinity, each);
    // The likeliest has the weight 1.
    each([&](index t) {
      if (weights[t] < rules.min_p) weights[t] = 0;
    });
  }
  const double uniform = rules.greedy ? 0 : rules.uniform;
  const index drawn = first_beyond<Threads>(
      vocabulary, [=](index t) { return weights[t]; }, [=](double sum) { return uniform * sum; });
  if (threadIdx.x == 0) {
    chosen[row] = static_cast<token>(drawn);
    log_probabilities[row] = rules.id_only ? 0 : logit(drawn) - log_total;
  }
}

}  // namespace detail

GYRE_END
