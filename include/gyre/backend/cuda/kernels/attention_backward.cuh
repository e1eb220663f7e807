// Sequence attention, backward: weights are computed again from the log-sum-exp, once for the gradient of the queries and once
// for those of the keys and values, so that every sum is one block's, in one order.
#pragma once

#include <cmath>

#include <gyre/backend/cuda/kernels/attention_tile.cuh>

GYRE_BEGIN

namespace detail {

/// The rows of a block: of queries (grouped_rows) or of keys.
struct attention_gradient_task {
  index row, length;   // the batch's row of the sequence's first token; tokens
  index first, count;  // rows of the sequence, at most those of the tile
};

template <class T, class S>
struct attention_gradients {
  using C = compute_t<T>;
  matrix_view<const T> q, k, v, o;
  const S* lse;  // (rows, heads)
  matrix_view<const T> d_o;
  S* dot;  // (rows, heads): of o and d_o, which is the sum of weight x weight gradient over the keys
  matrix_view<T> dq, dk, dv;
  index heads, kv_heads, width;
  C scale;
  const attention_gradient_task* tasks = nullptr;
};

/// Rows and columns of the tiles by the bytes of a row: left, right and scores together stay below 80 KiB, for rows of 2 KiB
/// below 140.
template <class T, unsigned Width>
struct attention_gradient_shapes {
  using C = compute_t<T>;
  static constexpr std::size_t bytes = sizeof(C) * Width;
  using tile = score_tile<C, Width, bytes <= 256 ? 4 : bytes <= 512 ? 2 : 1, bytes <= 512 ? 2 : 1>;
  static constexpr std::size_t tiles_bytes = sizeof(C) * 2 * (tile::left + tile::right) * tile::stride,
                               scores_bytes = sizeof(C) * tile::left * tile::score_stride;
};

/// A warp for each row and head.
template <class T, class S>
GYRE_KERNEL void __launch_bounds__(attention_threads) dot_rows(attention_gradients<T, S> x) {
  using C = compute_t<T>;
  const index pair = thread_number() / warp_lanes, row = pair / x.heads, column = pair % x.heads * x.width;
  if (row >= x.o.rows) return;
  C dot(0);
  for (index c = static_cast<index>(threadIdx.x % warp_lanes); c < x.width; c += warp_lanes)
    dot += widen(x.o[row][column + c]) * widen(x.d_o[row][column + c]);
  dot = warp_sum(dot);
  if (threadIdx.x % warp_lanes == 0) x.dot[pair] = static_cast<S>(dot);
}

/// The weight of a score. At most 1: where scores are very large, the rounding of lse may be anything.
template <class C>
GYRE_DEVICE C weight_of(C score, C lse) {
  const C x = score - lse;
  return std::exp(x > C(0) ? C(0) : x);
}

/// Gradients of the queries of a group of heads. One block for every task and key/value head.
template <class T, class S, class Tile>
GYRE_KERNEL void __launch_bounds__(attention_threads, Tile::blocks) query_gradients(attention_gradients<T, S> x) {
  using C = compute_t<T>;
  constexpr unsigned R = Tile::rows, J = Tile::columns, taken = scalars_in_16_bytes<T>;
  GYRE_DYNAMIC_SHARED(C, memory);
  C *const q = memory, *const d_o = q + Tile::left * Tile::stride, *const k = d_o + Tile::left * Tile::stride,
           *const v = k + Tile::right * Tile::stride, *const ds = v + Tile::right * Tile::stride;

  const attention_gradient_task& t = x.tasks[static_cast<index>(blockIdx.x) / x.kv_heads];
  const index kv_head = static_cast<index>(blockIdx.x) % x.kv_heads;
  const unsigned group = static_cast<unsigned>(x.heads / x.kv_heads), width = static_cast<unsigned>(x.width);
  const grouped_rows rows(t.first, group);
  const auto head_of = [&](unsigned row) { return kv_head * static_cast<index>(group) + rows.head_of(row); };
  const auto load_left = [&](C* to, matrix_view<const T> m) {
    Tile::template load<Tile::left, T>(to, x.width, packs_aligned(m.data, m.stride, x.width, taken),
                                       [&](unsigned row) -> const T* {
                                         if (static_cast<index>(row) >= t.count) return nullptr;
                                         return m[t.row + rows.query_of(row)] + head_of(row) * x.width;
                                       });
  };
  load_left(q, x.q);
  load_left(d_o, x.d_o);
  C lse[R], dot[R], sum[R][Tile::features];
  int later[R];  // keys that a row sees more than row 0
  GYRE_UNROLL for (unsigned r = 0; r < R; ++r) {
    const unsigned row = Tile::row(r);
    const bool valid = static_cast<index>(row) < t.count;
    const index at = (t.row + rows.query_of(row)) * x.heads + head_of(row);
    lse[r] = valid ? static_cast<C>(x.lse[at]) : C(0);
    dot[r] = valid ? static_cast<C>(x.dot[at]) : C(0);
    later[r] = static_cast<int>(rows.queries_to(row));
    GYRE_UNROLL for (unsigned c = 0; c < Tile::features; ++c) sum[r][c] = C(0);
  }

  const index all_see = rows.query + 1, last = rows.query_of(static_cast<unsigned>(t.count) - 1) + 1;
  const auto load_right = [&](C* to, matrix_view<const T> m, index first) {
    Tile::template load<Tile::right, T>(to, x.width, packs_aligned(m.data, m.stride, x.width, taken),
                                        [&](unsigned j) -> const T* {
                                          const index key = first + static_cast<index>(j);
                                          return key < last ? m[t.row + key] + kv_head * x.width : nullptr;
                                        });
  };
  for (index first = 0; first < last; first += Tile::right) {
    __syncthreads();  // the tile before may still be read
    load_right(k, x.k, first);
    load_right(v, x.v, first);
    __syncthreads();
    const int here = keys_before<Tile>(all_see, first);
    const auto sees = [&](unsigned r, unsigned j) { return static_cast<int>(j) < here + later[r]; };
    C s[R][J], dp[R][J];
    Tile::multiply(s, q, k, width);
    Tile::multiply(dp, d_o, v, width);
    GYRE_UNROLL for (unsigned r = 0; r < R; ++r) GYRE_UNROLL for (unsigned j = 0; j < J; ++j) s[r][j] =
        sees(r, Tile::column(j)) ? weight_of(s[r][j] * x.scale, lse[r]) * (dp[r][j] - dot[r]) * x.scale : C(0);
    Tile::share(ds, s);
    __syncwarp();
    const index left = last - first;
    const unsigned count = left < static_cast<index>(Tile::right) ? static_cast<unsigned>(left) : Tile::right;
    if (here == static_cast<int>(Tile::right))
      Tile::accumulate(sum, ds, k, count, [](unsigned, unsigned) { return true; });
    else
      Tile::accumulate(sum, ds, k, count, sees);
  }

  const bool aligned = packs_aligned(x.dq.data, x.dq.stride, x.width, Tile::pack);
  GYRE_UNROLL for (unsigned r = 0; r < R; ++r) {
    const unsigned row = Tile::row(r);
    if (static_cast<index>(row) < t.count)
      Tile::template store<T>(x.dq[t.row + rows.query_of(row)] + head_of(row) * x.width, sum[r], x.width, aligned);
  }
}

/// Gradients of keys and values, summed over the queries of all heads of the group, one query after the other. One block for
/// every task and key/value head.
template <class T, class S, class Tile>
GYRE_KERNEL void __launch_bounds__(attention_threads, Tile::blocks) key_gradients(attention_gradients<T, S> x) {
  using C = compute_t<T>;
  constexpr unsigned R = Tile::rows, J = Tile::columns, taken = scalars_in_16_bytes<T>;
  GYRE_DYNAMIC_SHARED(C, memory);
  C *const k = memory, *const v = k + Tile::left * Tile::stride, *const q = v + Tile::left * Tile::stride,
           *const d_o = q + Tile::right * Tile::stride, *const p = d_o + Tile::right * Tile::stride,
           *const ds = p + Tile::left * Tile::score_stride;

  const attention_gradient_task& t = x.tasks[static_cast<index>(blockIdx.x) / x.kv_heads];
  const index kv_head = static_cast<index>(blockIdx.x) % x.kv_heads;
  const unsigned group = static_cast<unsigned>(x.heads / x.kv_heads), width = static_cast<unsigned>(x.width);
  const auto load_left = [&](C* to, matrix_view<const T> m) {
    Tile::template load<Tile::left, T>(to, x.width, packs_aligned(m.data, m.stride, x.width, taken),
                                       [&](unsigned row) -> const T* {
                                         if (static_cast<index>(row) >= t.count) return nullptr;
                                         return m[t.row + t.first + static_cast<index>(row)] + kv_head * x.width;
                                       });
  };
  load_left(k, x.k);
  load_left(v, x.v);
  C keys[R][Tile::features], values[R][Tile::features];
  GYRE_UNROLL for (unsigned r = 0; r < R; ++r) GYRE_UNROLL for (unsigned c = 0; c < Tile::features; ++c) keys[r][c] =
      values[r][c] = C(0);

  // The queries' rows that see the first key begin at `begin`; from `all_see` on, they see every key of the tile.
  const index begin = t.first * static_cast<index>(group), end = t.length * static_cast<index>(group);
  const unsigned all_see = (static_cast<unsigned>(t.count) - 1) * group;
  for (index first = begin; first < end; first += Tile::right) {
    const grouped_rows rows(first, group);
    const auto head_of = [&](unsigned row) { return kv_head * static_cast<index>(group) + rows.head_of(row); };
    const auto load_right = [&](C* to, matrix_view<const T> m) {
      Tile::template load<Tile::right, T>(to, x.width, packs_aligned(m.data, m.stride, x.width, taken),
                                          [&](unsigned row) -> const T* {
                                            if (first + static_cast<index>(row) >= end) return nullptr;
                                            return m[t.row + rows.query_of(row)] + head_of(row) * x.width;
                                          });
    };
    __syncthreads();  // the tile before may still be read
    load_right(q, x.q);
    load_right(d_o, x.d_o);
    __syncthreads();
    const unsigned here = first - begin < static_cast<index>(all_see) ? static_cast<unsigned>(first - begin) : all_see;
    const auto sees = [&](unsigned r, unsigned j) { return Tile::row(r) * group <= here + j; };
    C s[R][J], dp[R][J];
    Tile::multiply(s, k, q, width);
    Tile::multiply(dp, v, d_o, width);
    GYRE_UNROLL for (unsigned j = 0; j < J; ++j) {
      const unsigned row = Tile::column(j);
      const bool valid = first + static_cast<index>(row) < end;
      const index at = (t.row + rows.query_of(row)) * x.heads + head_of(row);
      const C lse = valid ? static_cast<C>(x.lse[at]) : C(0), dot = valid ? static_cast<C>(x.dot[at]) : C(0);
      GYRE_UNROLL for (unsigned r = 0; r < R; ++r) {
        s[r][j] = valid && sees(r, row) ? weight_of(s[r][j] * x.scale, lse) : C(0);
        dp[r][j] = valid && sees(r, row) ? s[r][j] * (dp[r][j] - dot) * x.scale : C(0);
      }
    }
    Tile::share(p, s);
    Tile::share(ds, dp);
    __syncwarp();
    const index left = end - first;
    const unsigned count = left < static_cast<index>(Tile::right) ? static_cast<unsigned>(left) : Tile::right;
    const auto add = [&](auto seen) {
      Tile::accumulate(values, p, d_o, count, seen);
      Tile::accumulate(keys, ds, q, count, seen);
    };
    if (here == all_see)
      add([](unsigned, unsigned) { return true; });
    else
      add(sees);
  }

  const bool dk_aligned = packs_aligned(x.dk.data, x.dk.stride, x.width, Tile::pack),
             dv_aligned = packs_aligned(x.dv.data, x.dv.stride, x.width, Tile::pack);
  GYRE_UNROLL for (unsigned r = 0; r < R; ++r) {
    const index row = static_cast<index>(Tile::row(r));
    if (row >= t.count) continue;
    Tile::template store<T>(x.dk[t.row + t.first + row] + kv_head * x.width, keys[r], x.width, dk_aligned);
    Tile::template store<T>(x.dv[t.row + t.first + row] + kv_head * x.width, values[r], x.width, dv_aligned);
  }
}

}  // namespace detail

GYRE_END
