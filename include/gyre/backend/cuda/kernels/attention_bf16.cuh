// Sequence attention in bf16 on tensor cores, forward, for heads of 64 and 128 features that lie on addresses of 16 bytes. Scores,
// weights and sums are fp32; weights are rounded to bf16 before they multiply values.
//
// As in attention.cuh, a query's result has one order of operations whatever rows are around it: a warp has 16 rows, and a row
// takes 16 keys at a time from the tensor core as long as it sees all of them, the last few one by one.
#pragma once

#include <cstring>

#include <gyre/backend/cuda/kernels/attention.cuh>

GYRE_BEGIN

namespace detail {

/// A block's rows and keys. A warp reads 16 rows of 8 features at once, 16 bytes more than the row apart: no bank twice.
template <unsigned Width_, unsigned Warps>
struct bf16_tile {
  static constexpr unsigned width = Width_, warps = Warps, threads = warp_lanes * Warps, left = 16 * Warps, right = 64,
                            stride = Width_ + 8, steps = right / 16, features = Width_ / 8;
  static constexpr std::size_t shared_bytes = sizeof(__nv_bfloat16) * (left + 2 * right) * stride;
  // 27 and 51 KiB of shared memory; registers for two blocks of four warps.
  static constexpr unsigned blocks = Warps == 1 ? 4 : 2;

  /// Copies rows that source(row) points at, zeros where that is null; arrived after a wait.
  template <unsigned Rows, class Source>
  static GYRE_DEVICE void load(__nv_bfloat16* to, Source source) {
    constexpr unsigned across = Width_ / 8;
    const unsigned first = threadIdx.x % across * 8;
    for (unsigned i = threadIdx.x / across; i < Rows; i += threads / across) {
      const __nv_bfloat16* const from = source(i);
      if (from != nullptr)
        __pipeline_memcpy_async(to + i * stride + first, from + first, 16);
      else
        *reinterpret_cast<uint4*>(to + i * stride + first) = uint4{0, 0, 0, 0};
    }
    __pipeline_commit();
  }
};

GYRE_DEVICE std::uint32_t bf16_pair(float x, float y) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
  std::uint32_t bits;
  std::memcpy(&bits, &both, sizeof(bits));
  return bits;
}
/// Of the 4 lanes that have a row of a product.
GYRE_DEVICE float quad_max(float x) {
  GYRE_UNROLL for (unsigned lane = 1; lane < 4; lane *= 2) {
    const float other = __shfl_xor_sync(whole_warp, x, lane);
    x = other > x ? other : x;
  }
  return x;
}
GYRE_DEVICE float quad_sum(float x) {
  GYRE_UNROLL for (unsigned lane = 1; lane < 4; lane *= 2) x += __shfl_xor_sync(whole_warp, x, lane);
  return x;
}

/// One block for every task and key/value head; tasks have up to Tile::left rows.
template <class S, class Tile>
GYRE_KERNEL void __launch_bounds__(Tile::threads, Tile::blocks) attend_bf16(attention_operands<__nv_bfloat16, S> x) {
  using T = __nv_bfloat16;
  constexpr unsigned N = Tile::features;
  constexpr float nothing = -std::numeric_limits<float>::infinity(), log2_e = 1.4426950408889634f;
  GYRE_DYNAMIC_SHARED(T, memory);
  GYRE_SHARED(float[Tile::left * 17], weights_of_step);  // (row, key): of the 16 keys that not all rows of a warp see
  T *const q = memory, *const k = q + Tile::left * Tile::stride, *const v = k + Tile::right * Tile::stride;

  const attention_task& t = x.tasks[static_cast<index>(blockIdx.x) / x.kv_heads];
  const index kv_head = static_cast<index>(blockIdx.x) % x.kv_heads;
  const unsigned group = static_cast<unsigned>(x.heads / x.kv_heads), lane = threadIdx.x % warp_lanes,
                 first_row = threadIdx.x / warp_lanes * 16;
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

  // This thread's rows of a product are lane / 4 and the 8th behind it, its columns 2 (lane % 4) and the next.
  const unsigned row[2] = {first_row + lane / 4, first_row + lane / 4 + 8}, column = lane % 4 * 2;
  const int later[2] = {static_cast<int>(rows.queries_to(row[0])), static_cast<int>(rows.queries_to(row[1]))},
            least = static_cast<int>(rows.queries_to(first_row)), most = static_cast<int>(rows.queries_to(first_row + 15));
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
      if (static_cast<int>(16 * step) >= end) continue;
      GYRE_UNROLL for (unsigned d = 0; d < Tile::width; d += 16) {
        const auto a = simt::load_matrices<4>(q + (first_row + lane % 16) * Tile::stride + d + lane / 16 * 8);
        const auto b = simt::load_matrices<4>(k + (16 * step + lane % 8 + lane / 16 * 8) * Tile::stride + d + lane / 8 % 2 * 8);
        const simt::fragment_a queries{{a.part[0], a.part[1], a.part[2], a.part[3]}};
        simt::multiply_bf16(s[2 * step], queries, simt::fragment_b{{b.part[0], b.part[1]}});
        simt::multiply_bf16(s[2 * step + 1], queries, simt::fragment_b{{b.part[2], b.part[3]}});
      }
    }
    // c 0, 1 are of row[0], 2, 3 of row[1].
    const bool whole =
        here + least >= static_cast<int>(Tile::right) && left >= static_cast<index>(Tile::right) && t.steps_run == nullptr;
    float highest[2] = {nothing, nothing};
    GYRE_UNROLL for (unsigned n = 0; n < 2 * Tile::steps; ++n) GYRE_UNROLL for (unsigned c = 0; c < 4; ++c) {
      float& score = s[n].part[c];
      const unsigned key = 8 * n + column + c % 2;
      const bool visible = whole || (static_cast<index>(key) < left && static_cast<int>(key) < here + later[c / 2] &&
                                     kept(first + static_cast<index>(key)));
      score = visible ? score * x.scale : nothing;  // whose weight is 0
      if (score > highest[c / 2]) highest[c / 2] = score;
    }
    float shift[2];
    GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {
      highest[i] = quad_max(highest[i]);
      highest[i] = highest[i] > top[i] ? highest[i] : top[i];
      const float before = shrink(top[i], highest[i]);
      top[i] = highest[i];
      shift[i] = top[i] == nothing ? 0 : -top[i] * log2_e;
      weights[i] *= before;
      GYRE_UNROLL for (unsigned n = 0; n < N; ++n) sum[n][2 * i] *= before, sum[n][2 * i + 1] *= before;
    }
    float added[2] = {0, 0};
    GYRE_UNROLL for (unsigned n = 0; n < 2 * Tile::steps; ++n) GYRE_UNROLL for (unsigned c = 0; c < 4; ++c) {
      float& score = s[n].part[c];
      score = std::exp2(std::fma(score, log2_e, shift[c / 2]));
      added[c / 2] += score;
    }
    weights[0] += added[0], weights[1] += added[1];

    __pipeline_wait_prior(0);
    __syncthreads();  // the values are there, and the keys have been read
    if (first + static_cast<index>(Tile::right) < t.last_key)
      load(k, keys, x.key_stride, first + static_cast<index>(Tile::right));
    GYRE_UNROLL for (unsigned step = 0; step < Tile::steps; ++step) {
      const int behind = static_cast<int>(16 * (step + 1));
      if (behind - 16 >= end) continue;
      const simt::fragment_c &low = s[2 * step], &high = s[2 * step + 1];
      const simt::fragment_a p{{bf16_pair(low.part[0], low.part[1]), bf16_pair(low.part[2], low.part[3]),
                                bf16_pair(high.part[0], high.part[1]), bf16_pair(high.part[2], high.part[3])}};
      const bool sees_all[2] = {behind <= here + later[0], behind <= here + later[1]};
      GYRE_UNROLL for (unsigned n = 0; n < N; n += 2) {
        const auto b = simt::load_matrices<4, true>(v + (16 * step + lane % 16) * Tile::stride + 8 * n + lane / 16 * 8);
        GYRE_UNROLL for (unsigned m = 0; m < 2; ++m) {
          float(&to)[4] = sum[n + m];
          simt::fragment_c c{{to[0], to[1], to[2], to[3]}};
          simt::multiply_bf16(c, p, simt::fragment_b{{b.part[2 * m], b.part[2 * m + 1]}});
          // Values that a row does not see may be NaN, and 0 times that too.
          GYRE_UNROLL for (unsigned e = 0; e < 4; ++e) to[e] = sees_all[e / 2] ? c.part[e] : to[e];
        }
      }
      if (behind <= here + least) continue;
      __syncwarp();  // the step before may still be read
      GYRE_UNROLL for (unsigned e = 0; e < 4; ++e) {
        weights_of_step[row[e / 2] * 17 + column + e % 2] = widen(narrow<T>(low.part[e]));
        weights_of_step[row[e / 2] * 17 + column + e % 2 + 8] = widen(narrow<T>(high.part[e]));
      }
      __syncwarp();
      const int last = end < behind ? end : behind;
      for (int key = behind - 16; key < last; ++key) {
        const T* const value = v + static_cast<unsigned>(key) * Tile::stride + column;
        GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {
          if (sees_all[i] || key >= here + later[i]) continue;
          const float weight = weights_of_step[row[i] * 17 + static_cast<unsigned>(key + 16 - behind)];
          GYRE_UNROLL for (unsigned n = 0; n < N; ++n) GYRE_UNROLL for (unsigned e = 0; e < 2; ++e) sum[n][2 * i + e] +=
              weight * widen(value[8 * n + e]);
        }
      }
    }

    if ((first + static_cast<index>(Tile::right) - t.first_key) % attention_part != 0 &&
        first + static_cast<index>(Tile::right) < t.last_key)
      continue;
    GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {
      weights[i] = quad_sum(weights[i]);
      float part[2 * N], before[2 * N];
      GYRE_UNROLL for (unsigned n = 0; n < 2 * N; ++n) part[n] = sum[n / 2][2 * i + n % 2],
                                                       before[n] = total[n / 2][2 * i + n % 2];
      if (first - t.first_key < attention_part) {
        total_top[i] = top[i], total_weights[i] = weights[i];
        GYRE_UNROLL for (unsigned n = 0; n < 2 * N; ++n) before[n] = part[n];
      } else {
        join(total_top[i], total_weights[i], before, top[i], weights[i], part);
      }
      GYRE_UNROLL for (unsigned n = 0; n < 2 * N; ++n) total[n / 2][2 * i + n % 2] = before[n];
    }
  }

  GYRE_UNROLL for (unsigned i = 0; i < 2; ++i) {
    if (static_cast<index>(row[i]) >= t.count) continue;
    const bool first_thread = lane % 4 == 0;
    if (t.part >= 0) {
      float* const to =
          x.parts +
          ((t.part * x.kv_heads + kv_head) * static_cast<index>(Tile::left) + static_cast<index>(row[i])) * (x.width + 2);
      if (first_thread) to[0] = total_top[i], to[1] = total_weights[i];
      GYRE_UNROLL for (unsigned n = 0; n < N; ++n) GYRE_UNROLL for (unsigned e = 0; e < 2; ++e) to[2 + 8 * n + column + e] =
          total[n][2 * i + e];
      continue;
    }
    T* const to = place_in(x.o, row[i]) + column;
    GYRE_UNROLL for (unsigned n = 0; n < N; ++n) * reinterpret_cast<std::uint32_t*>(to + 8 * n) =
        bf16_pair(total[n][2 * i] / total_weights[i], total[n][2 * i + 1] / total_weights[i]);
    if (x.lse != nullptr && first_thread)
      x.lse[(t.row + rows.query_of(row[i])) * x.heads + kv_head * static_cast<index>(group) + rows.head_of(row[i])] =
          static_cast<S>(std::log(total_weights[i]) + total_top[i]);
  }
}

}  // namespace detail

GYRE_END
