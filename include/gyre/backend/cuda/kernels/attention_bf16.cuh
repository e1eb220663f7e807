// Sequence attention in bf16 on tensor cores, forward, for heads of 64 and 128 features that lie on addresses of 16 bytes.
// Scores, weights and sums are fp32; weights are rounded to bf16 before they multiply values.
//
// As in attention.cuh, a query's result has one order of operations whatever rows are around it: a warp has 16 rows, and a row
// takes 16 keys at a time from the tensor core as long as it sees all of them, the last few one by one.
#pragma once

#include <gyre/backend/cuda/kernels/attention.cuh>
#include <gyre/backend/cuda/kernels/attention_tile_bf16.cuh>

GYRE_BEGIN

namespace detail {

/// Of the 4 lanes that have a row of a product.
GYRE_DEVICE float quad_max(float x) {
  GYRE_UNROLL for (int lane = 1; lane < 4; lane *= 2) {
    const float other = __shfl_xor_sync(whole_warp, x, lane);
    x = other > x ? other : x;
  }
  return x;
}
GYRE_DEVICE float quad_sum(float x) {
  GYRE_UNROLL for (int lane = 1; lane < 4; lane *= 2) x += __shfl_xor_sync(whole_warp, x, lane);
  return x;
}

/// 128 features leave registers for scores of 32 keys beside two sums (a part's and the total).
template <unsigned Width, unsigned Warps>
using attend_bf16_tile = bf16_tile<Width, Warps, Width <= 64 ? 64 : 32>;

/// Shared memory of a block: 27 KiB for heads of 64 features, 34 for 128; with one warp 20 and 21.
template <class Tile>
inline constexpr std::size_t attend_bf16_bytes = sizeof(bfloat16) * (Tile::left + 2 * Tile::right) * Tile::stride;

/// One block for every task and key/value head; tasks have up to Tile::left rows. While scores of keys are computed their
/// values are on the way, and while values are added the next keys are. Two blocks of four warps fill the registers.
template <class S, class Tile>
GYRE_KERNEL void __launch_bounds__(Tile::threads, Tile::warps == 1 ? 4 : 2) attend_bf16(attention_operands<bfloat16, S> x) {
  using T = bfloat16;
  constexpr unsigned N = Tile::features;
  constexpr float nothing = -std::numeric_limits<float>::infinity(), log2_e = 1.4426950408889634f;
  GYRE_DYNAMIC_SHARED(T, memory);
  GYRE_SHARED(float[Tile::left * 17], weights_of_step);  // (row, key): of the 16 keys that not all rows of a warp see
  T *const q = memory, *const k = q + Tile::left * Tile::stride, *const v = k + Tile::right * Tile::stride;

  const attention_task& t = x.tasks[static_cast<index>(blockIdx.x) / x.kv_heads];
  const index kv_head = static_cast<index>(blockIdx.x) % x.kv_heads;
  const unsigned group = static_cast<unsigned>(x.heads / x.kv_heads);
  const grouped_rows rows(t.first, group);
  const auto place_in = [&](auto m, unsigned row) {
    return m[t.row + rows.query_of(row)] + (kv_head * static_cast<index>(group) + rows.head_of(row)) * x.width;
  };
  const T* const keys = static_cast<const T*>(t.keys) + kv_head * x.width;
  const T* const values = static_cast<const T*>(t.values) + kv_head * x.width;
  const auto kept = [&](index key) { return t.steps_run == nullptr || key >= t.past || t.steps_run[key] > x.step; };
  const auto load = [&](T* to, const T* base, index stride, index first) {
    Tile::template load<Tile::right>(to, [&](unsigned j) -> const T* {
      const index key = first + static_cast<index>(j);
      return key < t.last_key && kept(key) ? base + key * stride : nullptr;
    });
  };

  Tile::template load<Tile::left>(
      q, [&](unsigned row) -> const T* { return static_cast<index>(row) < t.count ? place_in(x.q, row) : nullptr; });
  load(k, keys, x.key_stride, t.first_key);

  const int later[2] = {static_cast<int>(rows.queries_to(Tile::row(0))), static_cast<int>(rows.queries_to(Tile::row(1)))},
            least = static_cast<int>(rows.queries_to(Tile::first_row())),
            most = static_cast<int>(rows.queries_to(Tile::first_row() + 15));
  const index all_see = t.past + rows.query + 1;  // the keys that row 0 sees; row i sees later[i] more, the warp least to most

  float top[2], weights[2], sum[N][4];
  float total_top[2]{}, total_weights[2]{}, total[N][4]{};
  for (index first = t.first_key; first < t.last_key; first += Tile::right) {
    const bool begins = (first - t.first_key) % attention_part == 0;
    if (begins) {
      GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) top[i] = nothing, weights[i] = 0;
      GYRE_UNROLL for (unsigned n = 0; n < N; ++n) GYRE_UNROLL for (unsigned c = 0; c < 4; ++c) sum[n][c] = 0;
    }
    __pipeline_wait_prior(0);
    __syncthreads();  // the keys are there, and the values before have been read
    load(v, values, x.value_stride, first);

    const index ahead = all_see - first, left = t.last_key - first;
    const int here = static_cast<int>(ahead < static_cast<index>(Tile::right) ? ahead : static_cast<index>(Tile::right));
    const int end = static_cast<index>(here + most) < left ? here + most : static_cast<int>(left);  // of what the warp reads
    simt::fragment_c s[2 * Tile::steps]{};
    GYRE_UNROLL for (unsigned step = 0; step < Tile::steps; ++step) {
      if (static_cast<int>(16 * step) < end) Tile::multiply(s[2 * step], s[2 * step + 1], q, k + 16 * step * Tile::stride);
    }
    const bool whole =
        here + least >= static_cast<int>(Tile::right) && left >= static_cast<index>(Tile::right) && t.steps_run == nullptr;
    float highest[2] = {nothing, nothing};
    GYRE_UNROLL for (unsigned n = 0; n < 2 * Tile::steps; ++n) GYRE_UNROLL for (unsigned c = 0; c < 4; ++c) {
      float& score = s[n].part[c];
      const unsigned key = 8 * n + Tile::column() + c % 2;
      const bool visible = whole || (static_cast<index>(key) < left && static_cast<int>(key) < here + later[c / 2] &&
                                     kept(first + static_cast<index>(key)));
      score = visible ? score * x.scale : nothing;  // whose weight is 0
      if (score > highest[c / 2]) highest[c / 2] = score;
    }
    float shift[2], before[2];
    GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {
      highest[i] = quad_max(highest[i]);
      highest[i] = highest[i] > top[i] ? highest[i] : top[i];
      before[i] = shrink(top[i], highest[i]);
      top[i] = highest[i];
      shift[i] = top[i] == nothing ? 0 : -top[i] * log2_e;
      GYRE_UNROLL for (unsigned n = 0; n < N; ++n) sum[n][2 * i] *= before[i], sum[n][2 * i + 1] *= before[i];
    }
    float added[2] = {0, 0};
    GYRE_UNROLL for (unsigned n = 0; n < 2 * Tile::steps; ++n) GYRE_UNROLL for (unsigned c = 0; c < 4; ++c) {
      float& score = s[n].part[c];
      score = std::exp2(std::fma(score, log2_e, shift[c / 2]));
      added[c / 2] += score;
    }
    GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) weights[i] = std::fma(weights[i], before[i], added[i]);

    __pipeline_wait_prior(0);
    __syncthreads();  // the values are there, and the keys have been read
    if (first + static_cast<index>(Tile::right) < t.last_key)
      load(k, keys, x.key_stride, first + static_cast<index>(Tile::right));
    GYRE_UNROLL for (unsigned step = 0; step < Tile::steps; ++step) {
      const int behind = static_cast<int>(16 * (step + 1));
      if (behind - 16 >= end) continue;
      const bool sees_all[2] = {behind <= here + later[0], behind <= here + later[1]};
      Tile::accumulate(sum, s[2 * step], s[2 * step + 1], v + 16 * step * Tile::stride, sees_all, behind <= here + least,
                       weights_of_step,
                       [&](unsigned i, unsigned j) { return behind - 16 + static_cast<int>(j) < here + later[i]; });
    }

    if ((first + static_cast<index>(Tile::right) - t.first_key) % attention_part != 0 &&
        first + static_cast<index>(Tile::right) < t.last_key)
      continue;
    GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {
      weights[i] = quad_sum(weights[i]);
      float part[2 * N], joined[2 * N];
      GYRE_UNROLL for (unsigned n = 0; n < 2 * N; ++n) part[n] = sum[n / 2][2 * i + n % 2],
                                                       joined[n] = total[n / 2][2 * i + n % 2];
      if (first - t.first_key < attention_part) {
        total_top[i] = top[i], total_weights[i] = weights[i];
        GYRE_UNROLL for (unsigned n = 0; n < 2 * N; ++n) joined[n] = part[n];
      } else {
        join(total_top[i], total_weights[i], joined, top[i], weights[i], part);
      }
      GYRE_UNROLL for (unsigned n = 0; n < 2 * N; ++n) total[n / 2][2 * i + n % 2] = joined[n];
    }
  }

  GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {
    const unsigned row = Tile::row(i);
    if (static_cast<index>(row) >= t.count) continue;
    const bool first_thread = Tile::column() == 0;
    if (t.part >= 0) {
      float* const to = x.parts + ((t.part * x.kv_heads + kv_head) * static_cast<index>(Tile::left) + static_cast<index>(row)) *
                                      (x.width + 2);
      if (first_thread) to[0] = total_top[i], to[1] = total_weights[i];
      GYRE_UNROLL for (unsigned n = 0; n < N; ++n) GYRE_UNROLL for (unsigned e = 0; e < 2; ++e)
          to[2 + 8 * n + Tile::column() + e] = total[n][2 * i + e];
      continue;
    }
    Tile::store(place_in(x.o, row), total, i, total_weights[i]);
    if (x.lse != nullptr && first_thread)
      x.lse[(t.row + rows.query_of(row)) * x.heads + kv_head * static_cast<index>(group) + rows.head_of(row)] =
          static_cast<S>(std::log(total_weights[i]) + total_top[i]);
  }
}

}  // namespace detail

GYRE_END
