// Sequence attention, forward: softmax over tiles of keys with a running maximum, so that the scores of a sequence never exist
// at once (Dao et al., "FlashAttention", NeurIPS 2022; Milakov, Gimelshein 2018).
//
// A query's result has one order of operations, whatever rows are around it and however many blocks share its keys: keys go in
// tiles, counted from position 0, and the tiles of every `attention_part` keys are a sum of their own. Training, prefill and
// decoding give a query the same bits.
#pragma once

#include <cmath>
#include <limits>

#include <gyre/backend/cuda/kernels/attention_tile.cuh>

GYRE_BEGIN

namespace detail {

/// Keys that are summed before sums are combined. A decoding query has a block for each such part; their results are
/// (width + 2) / (2 * 256 * width) of the reads.
inline constexpr index attention_part = 256;

/// The rows of a block.
struct attention_task {
  const void *keys, *values;      // of the sequence's first position
  const std::int32_t* steps_run;  // of its past tokens, or null
  index row, past;                // the batch's row of its first query; keys before that
  index first, count;             // rows of the group (grouped_rows), at most those of the tile
  index first_key, last_key;      // of the keys to read, a part's first and the one behind the last
  index part;                     // where the result goes: -1 to o and lse, otherwise this part
};

template <class T, class S>
struct attention_operands {
  using C = compute_t<T>;
  matrix_view<const T> q;
  matrix_view<T> o;
  S* lse;  // (rows, heads) or null
  index key_stride, value_stride;
  index heads = 0, kv_heads = 0, width = 0;
  C scale{};
  int step = 0;
  const attention_task* tasks = nullptr;
  C* parts = nullptr;  // (part, kv_head, row of the tile, width + 2): largest score, sum of weights, weighted values
};

/// Rows and columns of the tiles by the bytes of a row: as many scores a thread as 128 registers have room for beside two sums
/// of its features (a part's and the total), and as shared memory has for two blocks a multiprocessor (70 KiB of 164 at 256
/// bytes, 55 at 512, 51 at 1024; one block with 101 KiB at 2048). A narrow tile is for queries that are few.
template <class T, unsigned Width>
struct attention_shapes {
  using C = compute_t<T>;
  static constexpr std::size_t bytes = sizeof(C) * Width;
  static constexpr unsigned rows = bytes <= 256 ? 4 : bytes <= 512 ? 2 : 1, columns = rows;
  using wide = score_tile<C, Width, rows, columns>;
  using narrow = score_tile<C, Width, 1, columns>;
  template <class Tile>
  static constexpr std::size_t shared_bytes = sizeof(C) * (Tile::left * (Tile::stride + Tile::score_stride) +
                                                           2 * Tile::right * Tile::stride);
};

/// How the weights of sums shrink when they are joined, `least` being their common largest score.
template <class C>
GYRE_DEVICE C shrink(C top, C common) {
  // Where every score is -infinity, the weights are exp(-infinity) and not exp(-infinity + infinity).
  return std::exp(top - (common == -std::numeric_limits<C>::infinity() ? C(0) : common));
}
/// Largest score, sum of weights relative to it, and weighted values of some keys, joined with those of later keys. Written
/// with fma, so that every kernel rounds alike.
template <class C, unsigned N>
GYRE_DEVICE void join(C& top, C& weights, C (&values)[N], C later_top, C later_weights, const C (&later_values)[N]) {
  const C common = later_top > top ? later_top : top, old = shrink(top, common), later = shrink(later_top, common);
  top = common;
  weights = std::fma(weights, old, later_weights * later);
  GYRE_UNROLL for (unsigned c = 0; c < N; ++c) values[c] = std::fma(values[c], old, later_values[c] * later);
}

/// One block for every task and key/value head.
template <class T, class S, class Tile>
GYRE_KERNEL void __launch_bounds__(attention_threads, Tile::blocks) attend(attention_operands<T, S> x) {
  using C = compute_t<T>;
  constexpr unsigned R = Tile::rows, J = Tile::columns, features = Tile::features;
  constexpr C nothing = -std::numeric_limits<C>::infinity();
  GYRE_DYNAMIC_SHARED(C, memory);
  C *const q = memory, *const k = q + Tile::left * Tile::stride, *const v = k + Tile::right * Tile::stride,
           *const p = v + Tile::right * Tile::stride;

  const attention_task& t = x.tasks[static_cast<index>(blockIdx.x) / x.kv_heads];
  const index kv_head = static_cast<index>(blockIdx.x) % x.kv_heads;
  const unsigned group = static_cast<unsigned>(x.heads / x.kv_heads), width = static_cast<unsigned>(x.width);
  const grouped_rows rows(t.first, group);
  const auto place_in = [&](auto m, unsigned row) {
    return m[t.row + rows.query_of(row)] + (kv_head * static_cast<index>(group) + rows.head_of(row)) * x.width;
  };
  const T* const keys = static_cast<const T*>(t.keys) + kv_head * x.width;
  const T* const values = static_cast<const T*>(t.values) + kv_head * x.width;
  constexpr unsigned taken = scalars_in_16_bytes<T>;
  const bool keys_aligned = packs_aligned(keys, x.key_stride, x.width, taken),
             values_aligned = packs_aligned(values, x.value_stride, x.width, taken);
  const auto kept = [&](index key) { return t.steps_run == nullptr || key >= t.past || t.steps_run[key] > x.step; };

  Tile::template load<Tile::left, T>(
      q, x.width, packs_aligned(x.q.data, x.q.stride, x.width, taken),
      [&](unsigned row) -> const T* { return static_cast<index>(row) < t.count ? place_in(x.q, row) : nullptr; });
  int later[R];                                                // keys that a row sees more than row 0
  C top[R], weights[R], sum[R][features];                      // of this part of the keys
  C total_top[R]{}, total_weights[R]{}, total[R][features]{};  // of those before it
  GYRE_UNROLL for (unsigned r = 0; r < R; ++r) later[r] = static_cast<int>(rows.queries_to(Tile::row(r)));
  const index all_see = t.past + rows.query + 1;  // the keys that every row sees

  for (index part = t.first_key; part < t.last_key; part += attention_part) {
    GYRE_UNROLL for (unsigned r = 0; r < R; ++r) {
      top[r] = nothing, weights[r] = C(0);
      GYRE_UNROLL for (unsigned c = 0; c < features; ++c) sum[r][c] = C(0);
    }
    const index part_end = part + attention_part < t.last_key ? part + attention_part : t.last_key;
    for (index first = part; first < part_end; first += Tile::right) {
      __syncthreads();  // the tile before may still be read
      const auto row_of = [&](const T* base, index stride) {
        return [=, &t, &kept](unsigned j) -> const T* {
          const index key = first + static_cast<index>(j);
          return key < t.last_key && kept(key) ? base + key * stride : nullptr;
        };
      };
      Tile::template load<Tile::right, T>(k, x.width, keys_aligned, row_of(keys, x.key_stride));
      Tile::template load<Tile::right, T>(v, x.width, values_aligned, row_of(values, x.value_stride));
      __syncthreads();

      const int here = keys_before<Tile>(all_see, first);
      C s[R][J];
      Tile::multiply(s, q, k, width);
      bool kept_key[J];
      GYRE_UNROLL for (unsigned j = 0; j < J; ++j) {
        const index key = first + static_cast<index>(Tile::column(j));
        kept_key[j] = key < t.last_key && kept(key);
      }
      GYRE_UNROLL for (unsigned r = 0; r < R; ++r) {
        const auto visible = [&](unsigned j) { return kept_key[j] && static_cast<int>(Tile::column(j)) < here + later[r]; };
        C most = nothing;
        GYRE_UNROLL for (unsigned j = 0; j < J; ++j) {
          s[r][j] *= x.scale;
          if (visible(j) && s[r][j] > most) most = s[r][j];
        }
        most = row_max(most);
        most = most > top[r] ? most : top[r];
        const C before = shrink(top[r], most);
        C added(0);
        GYRE_UNROLL for (unsigned j = 0; j < J; ++j) {
          s[r][j] = visible(j) ? shrink(s[r][j], most) : C(0);
          added += s[r][j];
        }
        top[r] = most;
        weights[r] = std::fma(weights[r], before, added);
        GYRE_UNROLL for (unsigned c = 0; c < features; ++c) sum[r][c] *= before;
      }
      Tile::share(p, s);
      __syncwarp();
      // Behind the last key there are zeros, and so there are where a key is left out.
      const index left = part_end - first;
      const unsigned count = left < static_cast<index>(Tile::right) ? static_cast<unsigned>(left) : Tile::right;
      if (here == static_cast<int>(Tile::right))
        Tile::accumulate(sum, p, v, count, [](unsigned, unsigned) { return true; });
      else
        Tile::accumulate(sum, p, v, count, [&](unsigned r, unsigned j) { return static_cast<int>(j) < here + later[r]; });
    }
    GYRE_UNROLL for (unsigned r = 0; r < R; ++r) {
      weights[r] = row_sum(weights[r]);
      if (part == t.first_key) {
        total_top[r] = top[r], total_weights[r] = weights[r];
        GYRE_UNROLL for (unsigned c = 0; c < features; ++c) total[r][c] = sum[r][c];
      } else {
        join(total_top[r], total_weights[r], total[r], top[r], weights[r], sum[r]);
      }
    }
  }

  const bool o_aligned = packs_aligned(x.o.data, x.o.stride, x.width, Tile::pack);
  GYRE_UNROLL for (unsigned r = 0; r < R; ++r) {
    const unsigned row = Tile::row(r);
    if (static_cast<index>(row) >= t.count) continue;
    const bool first_thread = threadIdx.x % attention_across == 0;
    if (t.part >= 0) {
      C* const to = x.parts + ((t.part * x.kv_heads + kv_head) * static_cast<index>(Tile::left) + static_cast<index>(row)) *
                                  (x.width + 2);
      if (first_thread) to[0] = total_top[r], to[1] = total_weights[r];
      Tile::template store<C>(to + 2, total[r], x.width, false);
      continue;
    }
    GYRE_UNROLL for (unsigned c = 0; c < features; ++c) total[r][c] /= total_weights[r];
    Tile::template store<T>(place_in(x.o, row), total[r], x.width, o_aligned);
    if (x.lse != nullptr && first_thread)
      x.lse[(t.row + rows.query_of(row)) * x.heads + kv_head * static_cast<index>(group) + rows.head_of(row)] =
          static_cast<S>(std::log(total_weights[r]) + total_top[r]);
  }
}

/// Rows whose keys were read in several parts, `part` the first of them.
struct attention_join {
  index row, first, count, part, parts;
};

/// Joins the parts of narrow tiles, in their order: one block for every entry of `all` and key/value head, a thread for every
/// feature of a row in turn.
template <class T, class S, class Tile>
GYRE_KERNEL void __launch_bounds__(attention_threads) join_parts(attention_operands<T, S> x, const attention_join* all) {
  using C = compute_t<T>;
  const attention_join t = all[static_cast<index>(blockIdx.x) / x.kv_heads];
  const index kv_head = static_cast<index>(blockIdx.x) % x.kv_heads;
  const unsigned group = static_cast<unsigned>(x.heads / x.kv_heads), width = static_cast<unsigned>(x.width);
  const grouped_rows rows(t.first, group);
  for (unsigned at = threadIdx.x; at < static_cast<unsigned>(t.count) * width; at += attention_threads) {
    const unsigned row = at / width, feature = at % width;
    C top(0), weights(0), total[1]{};
    for (index n = 0; n < t.parts; ++n) {
      const C* const from =
          x.parts +
          (((t.part + n) * x.kv_heads + kv_head) * static_cast<index>(Tile::left) + static_cast<index>(row)) * (x.width + 2);
      const C sum[1]{from[2 + feature]};
      if (n == 0)
        top = from[0], weights = from[1], total[0] = sum[0];
      else
        join(top, weights, total, from[0], from[1], sum);
    }
    const index query = t.row + rows.query_of(row), head = kv_head * static_cast<index>(group) + rows.head_of(row);
    x.o[query][head * x.width + static_cast<index>(feature)] = narrow<T>(total[0] / weights);
    if (x.lse != nullptr && feature == 0) x.lse[query * x.heads + head] = static_cast<S>(std::log(weights) + top);
  }
}

}  // namespace detail

GYRE_END
