// Sequence attention in bf16 on tensor cores, backward, for heads of 64 and 128 features that lie on addresses of 16 bytes. As
// in attention_backward.cuh; weights and score gradients are rounded to bf16 before they multiply.
#pragma once

#include <gyre/backend/cuda/kernels/attention_backward.cuh>
#include <gyre/backend/cuda/kernels/attention_tile_bf16.cuh>

GYRE_BEGIN

namespace detail {

/// Shared memory of a block: two matrices of its rows and two of those that it goes through, 36 KiB for heads of 64 features
/// and for 128 features 68 (query_gradients) and 51 (key_gradients, whose tile of queries is half as long).
template <class Tile>
inline constexpr std::size_t gradients_bf16_bytes = sizeof(bfloat16) * 2 * (Tile::left + Tile::right) * Tile::stride;

/// Gradients of the queries of a group of heads. One block for every task and key/value head.
template <class S, class Tile>
GYRE_KERNEL void __launch_bounds__(Tile::threads, 2) query_gradients_bf16(attention_gradients<bfloat16, S> x) {
  using T = bfloat16;
  GYRE_DYNAMIC_SHARED(T, memory);
  GYRE_SHARED(float[Tile::left * 17], scores_of_step);  // (row, key): of 16 keys that not all rows of a warp see
  T *const q = memory, *const d_o = q + Tile::left * Tile::stride, *const k = d_o + Tile::left * Tile::stride,
           *const v = k + Tile::right * Tile::stride;

  const attention_gradient_task& t = x.tasks[static_cast<index>(blockIdx.x) / x.kv_heads];
  const index kv_head = static_cast<index>(blockIdx.x) % x.kv_heads;
  const unsigned group = static_cast<unsigned>(x.heads / x.kv_heads);
  const grouped_rows rows(t.first, group);
  const auto head_of = [&](unsigned row) { return kv_head * static_cast<index>(group) + rows.head_of(row); };
  const auto load_left = [&](T* to, matrix_view<const T> m) {
    Tile::template load<Tile::left>(to, [&](unsigned row) -> const T* {
      if (static_cast<index>(row) >= t.count) return nullptr;
      return m[t.row + rows.query_of(row)] + head_of(row) * x.width;
    });
  };
  load_left(q, x.q);
  load_left(d_o, x.d_o);
  float lse[2], dot[2], sum[Tile::features][4]{};
  int later[2];  // keys that a row sees more than row 0
  GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {
    const unsigned row = Tile::row(i);
    const bool valid = static_cast<index>(row) < t.count;
    const index at = (t.row + rows.query_of(row)) * x.heads + head_of(row);
    lse[i] = valid ? static_cast<float>(x.lse[at]) : 0;
    dot[i] = valid ? static_cast<float>(x.dot[at]) : 0;
    later[i] = static_cast<int>(rows.queries_to(row));
  }
  const int least = static_cast<int>(rows.queries_to(Tile::first_row())),
            most = static_cast<int>(rows.queries_to(Tile::first_row() + 15));

  const index all_see = rows.query + 1, last = rows.query_of(static_cast<unsigned>(t.count) - 1) + 1;
  const auto load_right = [&](T* to, matrix_view<const T> m, index first) {
    Tile::template load<Tile::right>(to, [&](unsigned j) -> const T* {
      const index key = first + static_cast<index>(j);
      return key < last ? m[t.row + key] + kv_head * x.width : nullptr;
    });
  };
  for (index first = 0; first < last; first += Tile::right) {
    __syncthreads();  // the tile before may still be read
    load_right(k, x.k, first);
    load_right(v, x.v, first);
    __pipeline_wait_prior(0);
    __syncthreads();
    const int here = keys_before<Tile>(all_see, first);
    GYRE_UNROLL for (unsigned step = 0; step < Tile::steps; ++step) {
      const int begin = static_cast<int>(16 * step);
      if (begin >= here + most) continue;
      simt::fragment_c s[2]{}, dp[2]{};
      Tile::multiply(s[0], s[1], q, k + 16 * step * Tile::stride);
      Tile::multiply(dp[0], dp[1], d_o, v + 16 * step * Tile::stride);
      const auto sees = [&](unsigned i, unsigned j) { return begin + static_cast<int>(j) < here + later[i]; };
      GYRE_UNROLL for (unsigned n = 0; n < 2; ++n) GYRE_UNROLL for (unsigned c = 0; c < 4; ++c) {
        const float p = weight_of(s[n].part[c] * x.scale, lse[c / 2]);
        s[n].part[c] = sees(c / 2, 8 * n + Tile::column() + c % 2) ? p * (dp[n].part[c] - dot[c / 2]) * x.scale : 0;
      }
      const bool sees_all[2] = {sees(0, 15), sees(1, 15)};
      Tile::accumulate(sum, s[0], s[1], k + 16 * step * Tile::stride, sees_all, begin + 16 <= here + least, scores_of_step,
                       sees);
    }
  }

  GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {
    const unsigned row = Tile::row(i);
    if (static_cast<index>(row) < t.count) Tile::store(x.dq[t.row + rows.query_of(row)] + head_of(row) * x.width, sum, i, 1.0f);
  }
}

/// Gradients of keys and values, summed over the queries of all heads of the group. One block for every task and key/value
/// head.
template <class S, class Tile>
GYRE_KERNEL void __launch_bounds__(Tile::threads, 2) key_gradients_bf16(attention_gradients<bfloat16, S> x) {
  using T = bfloat16;
  GYRE_DYNAMIC_SHARED(T, memory);
  GYRE_SHARED(float[Tile::left * 17], scores_of_step);  // (key, query): of 16 queries that do not see all keys of a warp
  GYRE_SHARED(float[Tile::right], lse);
  GYRE_SHARED(float[Tile::right], dot);
  T *const k = memory, *const v = k + Tile::left * Tile::stride, *const q = v + Tile::left * Tile::stride,
           *const d_o = q + Tile::right * Tile::stride;

  const attention_gradient_task& t = x.tasks[static_cast<index>(blockIdx.x) / x.kv_heads];
  const index kv_head = static_cast<index>(blockIdx.x) % x.kv_heads;
  const unsigned group = static_cast<unsigned>(x.heads / x.kv_heads);
  const auto load_left = [&](T* to, matrix_view<const T> m) {
    Tile::template load<Tile::left>(to, [&](unsigned row) -> const T* {
      if (static_cast<index>(row) >= t.count) return nullptr;
      return m[t.row + t.first + static_cast<index>(row)] + kv_head * x.width;
    });
  };
  load_left(k, x.k);
  load_left(v, x.v);
  float keys[Tile::features][4]{}, values[Tile::features][4]{};

  // The queries' rows that see the first key begin at `begin`; from `all_see` on, they see every key of the tile.
  const index begin = t.first * static_cast<index>(group), end = t.length * static_cast<index>(group);
  const unsigned all_see = (Tile::left - 1) * group;
  for (index first = begin; first < end; first += Tile::right) {
    const grouped_rows rows(first, group);
    const auto head_of = [&](unsigned row) { return kv_head * static_cast<index>(group) + rows.head_of(row); };
    const auto load_right = [&](T* to, matrix_view<const T> m) {
      Tile::template load<Tile::right>(to, [&](unsigned row) -> const T* {
        if (first + static_cast<index>(row) >= end) return nullptr;
        return m[t.row + rows.query_of(row)] + head_of(row) * x.width;
      });
    };
    __syncthreads();  // the tile before may still be read
    load_right(q, x.q);
    load_right(d_o, x.d_o);
    if (threadIdx.x < Tile::right) {
      const bool valid = first + static_cast<index>(threadIdx.x) < end;
      const index at = (t.row + rows.query_of(threadIdx.x)) * x.heads + head_of(threadIdx.x);
      lse[threadIdx.x] = valid ? static_cast<float>(x.lse[at]) : 0;
      dot[threadIdx.x] = valid ? static_cast<float>(x.dot[at]) : 0;
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    const unsigned here = first - begin < static_cast<index>(all_see) ? static_cast<unsigned>(first - begin) : all_see;
    const index left = end - first;
    GYRE_UNROLL for (unsigned step = 0; step < Tile::steps; ++step) {
      if (static_cast<index>(16 * step) >= left || here + 16 * step + 15 < Tile::first_row() * group) continue;
      simt::fragment_c s[2]{}, dp[2]{};
      Tile::multiply(s[0], s[1], k, q + 16 * step * Tile::stride);
      Tile::multiply(dp[0], dp[1], v, d_o + 16 * step * Tile::stride);
      const auto sees = [&](unsigned i, unsigned j) { return Tile::row(i) * group <= here + 16 * step + j; };
      GYRE_UNROLL for (unsigned n = 0; n < 2; ++n) GYRE_UNROLL for (unsigned c = 0; c < 4; ++c) {
        const unsigned j = 8 * n + Tile::column() + c % 2;
        const bool valid = static_cast<index>(16 * step + j) < left && sees(c / 2, j);
        const float p = weight_of(s[n].part[c] * x.scale, lse[16 * step + j]);
        s[n].part[c] = valid ? p : 0;
        dp[n].part[c] = valid ? p * (dp[n].part[c] - dot[16 * step + j]) * x.scale : 0;
      }
      const bool sees_all[2] = {sees(0, 0), sees(1, 0)}, everyone = (Tile::first_row() + 15) * group <= here + 16 * step;
      Tile::accumulate(values, s[0], s[1], d_o + 16 * step * Tile::stride, sees_all, everyone, scores_of_step, sees);
      Tile::accumulate(keys, dp[0], dp[1], q + 16 * step * Tile::stride, sees_all, everyone, scores_of_step, sees);
    }
  }

  GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {
    const index row = static_cast<index>(Tile::row(i));
    if (row >= t.count) continue;
    Tile::store(x.dk[t.row + t.first + row] + kv_head * x.width, keys, i, 1.0f);
    Tile::store(x.dv[t.row + t.first + row] + kv_head * x.width, values, i, 1.0f);
  }
}

}  // namespace detail

GYRE_END
