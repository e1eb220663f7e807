// bf16 on the `cpu` backend: operands become float in scratch of the pool, the kernels of float do the work, results are rounded
// once. Right first: the copies cost as much memory traffic as bf16 saves.
#pragma once

#include <algorithm>
#include <span>

#include <gyre/backend/cpu/attention.hpp>
#include <gyre/backend/cpu/attention_backward.hpp>
#include <gyre/backend/cpu/depth.hpp>
#include <gyre/backend/cpu/elementwise.hpp>
#include <gyre/backend/cpu/grouped_product.hpp>
#include <gyre/backend/cpu/initial_states.hpp>
#include <gyre/backend/cpu/loss.hpp>
#include <gyre/backend/cpu/norms.hpp>
#include <gyre/backend/cpu/product.hpp>
#include <gyre/backend/cpu/rotary.hpp>
#include <gyre/backend/cpu/widening.hpp>

GYRE_BEGIN

namespace detail {

inline void fill(thread_pool& pool, matrix_view<bfloat16> y, bfloat16 value) {
  for_spans(pool, y.rows, y.cols, y.contiguous(),
            [&](index i, index first, index count) { std::fill_n(y[i] + first, count, value); });
}
inline void add_scaled(thread_pool& pool, matrix_view<const bfloat16> x, float factor, matrix_view<bfloat16> y) {
  for_spans(pool, y.rows, y.cols, x.contiguous() && y.contiguous(), [&](index i, index first, index count) {
    const bfloat16* const from = x[i] + first;
    bfloat16* const to = y[i] + first;
    for (index j = 0; j < count; ++j) to[j] = bfloat16(to[j] + factor * from[j]);
  });
}
inline void add(thread_pool& pool, matrix_view<const bfloat16> x, matrix_view<bfloat16> y) { add_scaled(pool, x, 1.0f, y); }
inline void row_dot_products(thread_pool& pool, matrix_view<const bfloat16> x, matrix_view<const bfloat16> y, float* dots) {
  for_row_blocks(x.rows, 2 * x.cols, [&](index first, index count) {
    float_copies copies(pool, 2 * count * x.cols);
    row_dot_products<float>(pool, copies.of(x.slice(first, count)), copies.of(y.slice(first, count)), dots + first);
  });
}
inline void embed(thread_pool& pool, matrix_view<const bfloat16> table, std::span<const token> ids, double scale,
                  matrix_view<bfloat16> y) {
  const float factor = static_cast<float>(scale);
  for_rows(pool, y.rows, y.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      const bfloat16* const from = table[ids[static_cast<std::size_t>(i)]];
      for (index j = 0; j < y.cols; ++j) y[i][j] = bfloat16(factor * from[j]);
    }
  });
}
inline void embed_backward(thread_pool& pool, matrix_view<const bfloat16> dy, std::span<const token> ids, double scale,
                           matrix_view<float> dtable) {
  for_row_blocks(dy.rows, dy.cols, [&](index first, index count) {
    float_copies copies(pool, count * dy.cols);
    embed_backward<float>(pool, copies.of(dy.slice(first, count)),
                          ids.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), scale, dtable);
  });
}
inline void column_sum(thread_pool& pool, matrix_view<const bfloat16> x, float* sum, float* workspace) {
  for_row_blocks(x.rows, x.cols, [&](index first, index count) {
    float_copies copies(pool, count * x.cols);
    column_sum<float>(pool, copies.of(x.slice(first, count)), sum, workspace);
  });
}

inline void rms_norm(thread_pool& pool, matrix_view<const bfloat16> x, const bfloat16* gain, double eps,
                     matrix_view<bfloat16> y, float* rstd) {
  for_row_blocks(x.rows, 2 * x.cols, [&](index first, index count) {
    float_copies copies(pool, 2 * count * x.cols);
    const matrix_view<float> unit = copies.room(count, x.cols);
    rms_norm<float>(pool, copies.of(x.slice(first, count)), nullptr, eps, unit, rstd + first);
    for_rows(pool, count, x.cols, [&](index begin, index some) {
      for (index i = begin; i < begin + some; ++i)
        for (index j = 0; j < x.cols; ++j) {
          const bfloat16 rounded(unit[i][j]);
          y[first + i][j] = gain != nullptr ? bfloat16(rounded * gain[j]) : rounded;
        }
    });
  });
}
inline void add_rms_norm(thread_pool& pool, matrix_view<const bfloat16> x, matrix_view<const bfloat16> f, const bfloat16* gain,
                         double eps, matrix_view<bfloat16> total, matrix_view<bfloat16> y, float* rstd) {
  for_rows(pool, x.rows, 2 * x.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i)
      for (index j = 0; j < x.cols; ++j) total[i][j] = bfloat16(x[i][j] + f[i][j]);
  });
  rms_norm(pool, matrix_view<const bfloat16>(total), gain, eps, y, rstd);
}
inline void rms_norm_backward(thread_pool& pool, matrix_view<const bfloat16> x, const bfloat16* gain, const float* rstd,
                              matrix_view<const bfloat16> dy, matrix_view<bfloat16> dx, float* dgain, float* workspace) {
  for_row_blocks(x.rows, 3 * x.cols, [&](index first, index count) {
    float_copies copies(pool, (3 * count + 1) * x.cols);
    const float* const gains = copies.of(gain, x.cols);
    const matrix_view<float> to = copies.of(matrix_view<const bfloat16>(dx.slice(first, count)));
    rms_norm_backward<float>(pool, copies.of(x.slice(first, count)), gains, rstd + first, copies.of(dy.slice(first, count)), to,
                             dgain, workspace);
    store_rounded(pool, to, dx.slice(first, count));
  });
}
inline void row_change(thread_pool& pool, matrix_view<const bfloat16> x, matrix_view<const bfloat16> before, float* change) {
  for_row_blocks(x.rows, 2 * x.cols, [&](index first, index count) {
    float_copies copies(pool, 2 * count * x.cols);
    row_change<float>(pool, copies.of(x.slice(first, count)), copies.of(before.slice(first, count)), change + 2 * first);
  });
}

/// y (+)= x b for y in bf16 or float.
template <class Y>
void multiply(thread_pool& pool, matrix_view<Y> y, matrix_view<const bfloat16> x, const packed_matrix<float>& b,
              bool accumulate) {
  check_product("multiply", y, x.rows, x.cols, b.depth(), b.cols());
  for_row_blocks(x.rows, x.cols + y.cols, [&](index first, index count) {
    float_copies copies(pool, count * (x.cols + y.cols));
    const matrix_view<const float> from = copies.of(x.slice(first, count));
    if constexpr (std::is_same_v<Y, float>) {
      multiply(pool, y.slice(first, count), from, b, accumulate);
    } else {
      const matrix_view<Y> here = y.slice(first, count);
      const matrix_view<float> to = accumulate ? copies.of(matrix_view<const Y>(here)) : copies.room(count, y.cols);
      multiply(pool, to, from, b, accumulate);
      store_rounded(pool, to, here);
    }
  });
}
inline void multiply_transposed(thread_pool& pool, matrix_view<float> dw, matrix_view<const bfloat16> dy,
                                matrix_view<const bfloat16> x) {
  check_product("multiply_transposed", dw, dy.cols, dy.rows, x.rows, x.cols);
  for_row_blocks(x.rows, x.cols + dy.cols, [&](index first, index count) {
    float_copies copies(pool, count * (x.cols + dy.cols));
    const matrix_view<const float> a = copies.of(dy.slice(first, count)), b = copies.of(x.slice(first, count));
    multiply_transposed(pool, dw, a, b);
  });
}
inline bool grouped_multiply(thread_pool& pool, const char* call, matrix_view<bfloat16> c, matrix_view<const bfloat16> a,
                             weight_matrix<bfloat16, packed_weights<bfloat16>> w, row_groups groups, bool backward,
                             bool accumulate) {
  float_copies copies(pool, a.size() + c.size());
  const matrix_view<const float> from = copies.of(a);
  const matrix_view<float> to = accumulate ? copies.of(matrix_view<const bfloat16>(c)) : copies.room(c.rows, c.cols);
  if (!grouped_multiply(pool, call, to, from, w, groups, backward, accumulate)) return false;
  store_rounded(pool, to, c);
  return true;
}
inline void grouped_multiply_transposed(thread_pool& pool, matrix_view<float> dw, matrix_view<const bfloat16> dy,
                                        matrix_view<const bfloat16> x, row_groups groups) {
  float_copies copies(pool, dy.size() + x.size());
  const matrix_view<const float> a = copies.of(dy), b = copies.of(x);
  grouped_multiply_transposed(pool, dw, a, b, groups);
}

inline void gated_silu(thread_pool& pool, matrix_view<const bfloat16> h, matrix_view<bfloat16> a) {
  for_row_blocks(a.rows, h.cols + a.cols, [&](index first, index count) {
    float_copies copies(pool, count * (h.cols + a.cols));
    const matrix_view<float> to = copies.room(count, a.cols);
    gated_silu<float>(pool, copies.of(h.slice(first, count)), to);
    store_rounded(pool, to, a.slice(first, count));
  });
}
inline void gated_silu_backward(thread_pool& pool, matrix_view<const bfloat16> h, matrix_view<const bfloat16> da,
                                matrix_view<bfloat16> dh) {
  for_row_blocks(da.rows, 2 * h.cols + da.cols, [&](index first, index count) {
    float_copies copies(pool, count * (2 * h.cols + da.cols));
    const matrix_view<float> to = copies.room(count, dh.cols);
    gated_silu_backward<float>(pool, copies.of(h.slice(first, count)), copies.of(da.slice(first, count)), to);
    store_rounded(pool, to, dh.slice(first, count));
  });
}

inline void rotary(thread_pool& pool, matrix_view<bfloat16> x, const bfloat16* bias, std::span<const std::int32_t> positions,
                   const float* table, rotary_shape shape, float sign) {
  for_row_blocks(x.rows, x.cols, [&](index first, index count) {
    float_copies copies(pool, (count + 1) * x.cols);
    const matrix_view<bfloat16> here = x.slice(first, count);
    const matrix_view<float> to = copies.of(matrix_view<const bfloat16>(here));
    rotary<float>(pool, to, copies.of(bias, x.cols),
                  positions.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), table, shape, sign);
    store_rounded(pool, to, here);
  });
}
inline void rotate(thread_pool& pool, matrix_view<bfloat16> x, const float* angles, rotary_shape shape, float sign) {
  for_row_blocks(x.rows, x.cols, [&](index first, index count) {
    float_copies copies(pool, count * x.cols);
    const matrix_view<bfloat16> here = x.slice(first, count);
    const matrix_view<float> to = copies.of(matrix_view<const bfloat16>(here));
    rotate<float>(pool, to, angles, shape, sign);
    store_rounded(pool, to, here);
  });
}

inline void attend(thread_pool& pool, matrix_view<const bfloat16> q, matrix_view<const bfloat16> k,
                   matrix_view<const bfloat16> v, const batch_layout& layout, attention_shape shape, matrix_view<bfloat16> o,
                   float* lse) {
  float_copies copies(pool, q.size() + k.size() + v.size() + o.size());
  const matrix_view<float> to = copies.room(o.rows, o.cols);
  attend<float>(pool, copies.of(q), {copies.of(k), copies.of(v), {}}, layout, shape, to, lse);
  store_rounded(pool, to, o);
}
/// Of the lanes, the layer's keys and values up to the newest token are widened.
inline void attend(thread_pool& pool, matrix_view<const bfloat16> q, std::span<const cache_lane<bfloat16>> lanes, index cursor,
                   int step, const batch_layout& layout, attention_shape shape, matrix_view<bfloat16> o) {
  const index width = shape.kv_heads * shape.width, count = static_cast<index>(lanes.size());
  constexpr index lane_floats = divide_up(index{sizeof(cache_lane<float>)}, index{sizeof(float)});
  index scalars = q.size() + o.size() + count * lane_floats;
  for (const sequence_span& s : layout.sequences()) scalars += 2 * width * (s.past + s.count);
  float_copies copies(pool, scalars);
  const matrix_view<float> to = copies.room(o.rows, o.cols);
  auto* const wide = reinterpret_cast<cache_lane<float>*>(copies.room(count, lane_floats).data);
  index tokens = 0;
  for (const sequence_span& s : layout.sequences()) tokens += s.past + s.count;
  float* base = copies.room(tokens, 2 * width).data;
  for (index i = 0; i < count; ++i) {
    const cache_lane<bfloat16>& lane = lanes[static_cast<std::size_t>(i)];
    const sequence_span& s = layout.sequences()[static_cast<std::size_t>(i)];
    const index seen = s.past + s.count;
    const bfloat16* const keys = lane.base + cursor * lane.capacity;
    copy(pool, matrix_view<const bfloat16>(keys, seen, width), matrix_view<float>(base, seen, width));
    copy(pool, matrix_view<const bfloat16>(keys + width * lane.capacity, seen, width),
         matrix_view<float>(base + width * seen, seen, width));
    ::new (static_cast<void*>(wide + i)) cache_lane<float>{base, seen, lane.steps_run};
    base += 2 * width * seen;
  }
  attend<float>(pool, copies.of(q), {{}, {}, {wide, lanes.size()}, 0, step}, layout, shape, to, nullptr);
  store_rounded(pool, to, o);
}
inline void attention_backward(thread_pool& pool, const attention_gradient<bfloat16>& g, const float* lse,
                               const batch_layout& layout) {
  const index n = g.q.rows, wide = g.q.cols, narrow = g.k.cols;
  float_copies first(pool, n * (3 * wide + 2 * narrow)), second(pool, n * (wide + 2 * narrow));
  const attention_gradient<float> in_float{
      first.of(g.q),   first.of(g.k),        first.of(g.v),          first.of(g.o),          lse,
      first.of(g.d_o), second.room(n, wide), second.room(n, narrow), second.room(n, narrow), g.shape};
  attention_backward<float>(pool, in_float, layout);
  store_rounded(pool, in_float.dq, g.dq), store_rounded(pool, in_float.dk, g.dk), store_rounded(pool, in_float.dv, g.dv);
}
inline void depth_attention(thread_pool& pool, matrix_view<const bfloat16> q, matrix_view<const bfloat16> k,
                            matrix_view<const bfloat16> v, attention_shape shape, matrix_view<bfloat16> o, float* lse) {
  float_copies copies(pool, q.size() + k.size() + v.size() + o.size());
  const matrix_view<float> to = copies.room(o.rows, o.cols);
  depth_attention<float>(pool, copies.of(q), copies.of(k), copies.of(v), shape, to, lse);
  store_rounded(pool, to, o);
}
inline void depth_attention_backward(thread_pool& pool, matrix_view<const bfloat16> q, matrix_view<const bfloat16> k,
                                     matrix_view<const bfloat16> v, matrix_view<const bfloat16> o, const float* lse,
                                     matrix_view<const bfloat16> d_o, attention_shape shape, matrix_view<bfloat16> dq,
                                     matrix_view<bfloat16> dk, matrix_view<bfloat16> dv) {
  float_copies copies(pool, 4 * q.size() + 4 * k.size());
  const matrix_view<float> to_q = copies.room(dq.rows, dq.cols), to_k = copies.of(matrix_view<const bfloat16>(dk)),
                           to_v = copies.of(matrix_view<const bfloat16>(dv));
  depth_attention_backward<float>(pool, copies.of(q), copies.of(k), copies.of(v), copies.of(o), lse, copies.of(d_o), shape,
                                  to_q, to_k, to_v);
  store_rounded(pool, to_q, dq), store_rounded(pool, to_k, dk), store_rounded(pool, to_v, dv);
}

inline void cross_entropy(thread_pool& pool, matrix_view<bfloat16> logits, std::span<const token> targets, float scale,
                          float* losses, bool gradient) {
  for_row_blocks(logits.rows, logits.cols, [&](index first, index count) {
    float_copies copies(pool, count * logits.cols);
    const matrix_view<bfloat16> here = logits.slice(first, count);
    const matrix_view<float> z = copies.of(matrix_view<const bfloat16>(here));
    cross_entropy<float>(pool, z, targets.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), scale,
                         losses + first, gradient);
    if (gradient) store_rounded(pool, z, here);
  });
}
inline void random_normal(thread_pool& pool, matrix_view<bfloat16> y, const batch_layout& layout, state_key key, double sigma,
                          bool truncated) {
  float_copies copies(pool, y.size());
  const matrix_view<float> drawn = copies.room(y.rows, y.cols);
  random_normal<float>(pool, drawn, layout, key, sigma, truncated);
  store_rounded(pool, drawn, y);
}
inline void standardise(thread_pool& pool, matrix_view<bfloat16> y) {
  for_row_blocks(y.rows, y.cols, [&](index first, index count) {
    float_copies copies(pool, count * y.cols);
    const matrix_view<bfloat16> here = y.slice(first, count);
    const matrix_view<float> z = copies.of(matrix_view<const bfloat16>(here));
    standardise<float>(pool, z);
    store_rounded(pool, z, here);
  });
}

}  // namespace detail

GYRE_END
