// Attention of a row over its own slots, one for each step so far. A warp has one head of one row; its lanes are features while
// scores are summed, and slots while those become weights.
//
// Least traffic: forward reads q, k, v and writes o; backward reads q, k, v, o, d_o, writes dq and adds to dk and dv. Keys and
// values are most of it: a row of each for every slot. Query heads that share them meet them in the cache, being neighbours.
#pragma once

#include <cmath>
#include <limits>

#include <gyre/backend/cuda/kernels/device.cuh>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

/// Four warps a block, for there is nothing to share; sums of 4 features a lane, so that heads up to 128 wide need one pass over
/// the slots (wider ones: one for each 128); 4 slots at once, whose loads are under way together. Not measured on a GPU.
inline constexpr unsigned depth_threads = 128, depth_features = 4, depth_slots = 4;
inline constexpr index depth_pass = depth_features * warp_lanes;

/// The vectors of a slot, one for each of the slots of a head of a row.
template <class T>
struct depth_vectors {
  const T* first;
  index step;  // from slot to slot

  GYRE_DEVICE depth_vectors(matrix_view<const T> x, index tokens, index row, index column)
      : first(x[row] + column), step(x.stride * tokens) {}
};

/// In lane j the scalar product of `x` and vector `begin` + j, for `here` slots; the lanes behind have numbers of no meaning.
template <class S, class T>
GYRE_DEVICE S depth_products(const T* x, const depth_vectors<T>& y, index begin, index here, index width) {
  const index lane = threadIdx.x % warp_lanes;
  S mine(0);
  for (index j = 0; j < here; j += depth_slots) {
    const T* from[depth_slots];  // the last one again where there are no more: its sum is not used
    GYRE_UNROLL for (unsigned s = 0; s < depth_slots; ++s) from[s] =
        y.first + (begin + (j + s < here ? j + s : here - 1)) * y.step;
    S sums[depth_slots] = {};
    for (index c = lane; c < width; c += warp_lanes) {
      const S feature(widen(x[c]));
      GYRE_UNROLL for (unsigned s = 0; s < depth_slots; ++s) sums[s] += feature * S(widen(from[s][c]));
    }
    GYRE_UNROLL for (unsigned s = 0; s < depth_slots; ++s) {
      const S product = warp_sum(sums[s]);
      if (lane == j + s) mine = product;
    }
  }
  return mine;
}

/// sums[f] += the sum over `here` slots of the weight in lane j times feature column + lane + 32 f of vector `begin` + j. Weights
/// of the lanes behind are 0.
template <class S, class T>
GYRE_DEVICE void depth_sums(S (&sums)[depth_features], S weight, const depth_vectors<T>& y, index begin, index here,
                            index column, index width) {
  const index lane = threadIdx.x % warp_lanes;
  for (index j = 0; j < here; j += depth_slots) GYRE_UNROLL for (unsigned s = 0; s < depth_slots; ++s) {
      const S factor = __shfl_sync(whole_warp, weight, static_cast<int>(j + s));
      const T* const from = y.first + (begin + (j + s < here ? j + s : here - 1)) * y.step;
      GYRE_UNROLL for (unsigned f = 0; f < depth_features; ++f) {
        const index c = column + lane + f * warp_lanes;
        if (c < width) sums[f] += factor * S(widen(from[c]));
      }
    }
}

/// Calls store(c, f) for the lane's features in a pass.
template <class Store>
GYRE_DEVICE void depth_store(index column, index width, Store store) {
  GYRE_UNROLL for (unsigned f = 0; f < depth_features; ++f) {
    const index c = column + threadIdx.x % warp_lanes + f * warp_lanes;
    if (c < width) store(c, f);
  }
}

/// o and lse (rows, heads) of the slots' softmax, whose maximum runs along; numbers of 32 slots exist at once.
template <class T, class S>
GYRE_KERNEL void __launch_bounds__(depth_threads)
    attend_depth(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, index slots, attention_shape shape,
                 matrix_view<T> o, S* lse) {
  using std::exp, std::log;
  const index item = thread_number() / warp_lanes, lane = threadIdx.x % warp_lanes, width = shape.width;
  if (item >= q.rows * shape.heads) return;
  const index row = item / shape.heads, head = item % shape.heads, shared = head / (shape.heads / shape.kv_heads) * width;
  const T* const query = q[row] + head * width;
  const depth_vectors<T> keys(k, q.rows, row, shared), values(v, q.rows, row, shared);
  constexpr S least = -std::numeric_limits<S>::infinity();
  for (index column = 0; column < width; column += depth_pass) {
    S sums[depth_features] = {}, top = least, total(0);
    for (index begin = 0; begin < slots; begin += warp_lanes) {
      const index here = slots - begin < warp_lanes ? slots - begin : warp_lanes;
      const S product = depth_products<S>(query, keys, begin, here, width);
      const S score = lane < here ? product * static_cast<S>(shape.scale) : least;
      const S found = warp_max(score), now = found > top ? found : top;
      const S shift = now == least ? S(0) : now;  // no score is finite yet
      const S weight = exp(score - shift), factor = exp(top - shift);
      total = total * factor + warp_sum(weight);
      for (S& sum : sums) sum *= factor;
      depth_sums(sums, weight, values, begin, here, column, width);
      top = now;
    }
    depth_store(column, width, [&](index c, unsigned f) {
      o[row][head * width + c] = narrow<T>(static_cast<compute_t<T>>(slots > 0 ? sums[f] / total : S(0)));
    });
    if (lane == 0) lse[item] = slots > 0 ? log(total) + top : S(0);
  }
}

/// dq, and for the other kernel weights and gradients of scores, both (rows, heads, slots).
template <class T, class S>
GYRE_KERNEL void __launch_bounds__(depth_threads)
    differentiate_depth_queries(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, matrix_view<const T> o,
                                const S* lse, matrix_view<const T> d_o, index slots, attention_shape shape, matrix_view<T> dq,
                                S* weights, S* d_scores) {
  using std::exp;
  const index item = thread_number() / warp_lanes, lane = threadIdx.x % warp_lanes, width = shape.width;
  if (item >= q.rows * shape.heads) return;
  const index row = item / shape.heads, head = item % shape.heads, shared = head / (shape.heads / shape.kv_heads) * width;
  const T *const query = q[row] + head * width, *const d_out = d_o[row] + head * width, *const out = o[row] + head * width;
  const depth_vectors<T> keys(k, q.rows, row, shared), values(v, q.rows, row, shared);
  const S scale = static_cast<S>(shape.scale);
  S mean(0);  // of the weights' gradients
  for (index c = lane; c < width; c += warp_lanes) mean += S(widen(d_out[c])) * S(widen(out[c]));
  mean = warp_sum(mean);
  for (index column = 0; column < width; column += depth_pass) {
    S sums[depth_features] = {};
    for (index begin = 0; begin < slots; begin += warp_lanes) {
      const index here = slots - begin < warp_lanes ? slots - begin : warp_lanes;
      const S product = depth_products<S>(query, keys, begin, here, width);
      const S d_weight = depth_products<S>(d_out, values, begin, here, width);
      const S weight = lane < here ? exp(product * scale - lse[item]) : S(0), d_score = weight * (d_weight - mean) * scale;
      if (lane < here) {
        weights[item * slots + begin + lane] = weight;
        d_scores[item * slots + begin + lane] = d_score;
      }
      depth_sums(sums, d_score, keys, begin, here, column, width);
    }
    depth_store(column, width,
                [&](index c, unsigned f) { dq[row][head * width + c] = narrow<T>(static_cast<compute_t<T>>(sums[f])); });
  }
}

/// dk and dv, for every element: i is row * slots + slot, so that blocks which read the same queries follow each other.
template <class T, class S>
struct differentiate_depth_slot {
  matrix_view<const T> q, d_o;
  const S *weights, *d_scores;
  index slots;
  attention_shape shape;
  matrix_view<T> dk, dv;

  template <int>
  GYRE_DEVICE void operator()(index i, index j) const {
    const index row = i / slots, slot = i % slots, sharing = shape.heads / shape.kv_heads;
    S d_key(0), d_value(0);
    for (index n = 0; n < sharing; ++n) {  // the query heads in their order
      const index head = j / shape.width * sharing + n, column = head * shape.width + j % shape.width;
      const index at = (row * shape.heads + head) * slots + slot;
      d_key += d_scores[at] * S(widen(q[row][column]));
      d_value += weights[at] * S(widen(d_o[row][column]));
    }
    T &to_key = dk[slot * q.rows + row][j], &to_value = dv[slot * q.rows + row][j];
    to_key = narrow<T>(static_cast<compute_t<T>>(S(widen(to_key)) + d_key));
    to_value = narrow<T>(static_cast<compute_t<T>>(S(widen(to_value)) + d_value));
  }
};

}  // namespace detail

GYRE_END
