// Causal attention over the tokens of a sequence, with rotary positions and grouped queries.
#pragma once

#include <cmath>

#include <gyre/core/dims.hpp>
#include <gyre/layers/expert_mixture.hpp>
#include <gyre/layers/head_norm.hpp>
#include <gyre/layers/linear.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

/// Rules of a sequence attention.
struct attention_options {
  routing projections{};              // of several copies of the four projections: see below
  pairing pairs = pairing::adjacent;  // which features one rotary angle turns
  bool query_key_bias = true;         // learned, on q and k only, added before the rotation
  bool query_key_norm = false;     // RMSNorm of every head's q and k, before bias and rotation (attention_mixtures, section 2)
  gain norm_gain = gain::learned;  // of those norms
  constexpr bool operator==(const attention_options&) const = default;
};

/// The rules of sequence attention in attention mixtures (attention_mixtures, section 2): norms of queries and keys, no bias. The family's
/// dims.rope_base is 10000.
inline constexpr attention_options mixture_attention{.query_key_bias = false, .query_key_norm = true};

/// recurrent_depth, section 1: fused Wqkv with rows [q heads | k heads | v heads], bias on q and k, rotary encoding at the
/// token's absolute position, scores scaled by 1 / sqrt(d), output projection; no other biases. With grouped queries G of H
/// heads hold keys and values, and the bias has H + G rows.
///
/// attention_mixtures, section 5: with `projections.count` above 1 the projections are sparse mixtures of so many copies, with
/// tied scores: one choice a token, made from the layer's input, mixes q, k, v and the output projection.
template <dims D, attention_options O = attention_options{}>
struct sequence_attention {
  static_assert(D.width > 0, "sequence_attention: dims.width must be at least 1");
  static_assert(D.heads > 0, "sequence_attention: dims.heads must be at least 1");
  static_assert(D.head_width > 0 || D.heads <= 0 || D.width % D.heads == 0,
                "sequence_attention: dims.width must be a multiple of dims.heads, or give dims.head_width");
  static_assert(D.width_per_head() % 2 == 0,
                "sequence_attention: rotary encoding turns pairs, so the width of a head must be even");
  static_assert(D.heads <= 0 || D.heads % (D.key_value_heads() > 0 ? D.key_value_heads() : 1) == 0,
                "sequence_attention: dims.heads must be a multiple of dims.kv_heads");
  static_assert(D.context > 0, "sequence_attention: dims.context must be at least 1");

  static constexpr dims shape = D;
  static constexpr std::string_view name = "attn";
  static constexpr int width = D.width, inputs = width, outputs = width;
  static constexpr int q_width = D.query_width(), kv_width = D.key_value_width(), qk_width = q_width + kv_width;
  static constexpr int fused_width = qk_width + kv_width;
  static constexpr index cache_width = index{2} * kv_width;
  static constexpr bool backward_assigns = true;
  using qkv = linear<width, fused_width, linear_options{role::input_projection, {{q_width, kv_width, kv_width}}}>;
  using proj = linear<q_width, width, linear_options{role::output_projection}>;
  using q_norm = head_norm<D.heads, D.width_per_head(), O.norm_gain>;
  using k_norm = head_norm<D.key_value_heads(), D.width_per_head(), O.norm_gain>;
  static_assert(
      O.projections.count == 1 ? O.projections.active == 1 : O.projections.active < O.projections.count,
      "sequence_attention: a mixture of projections must be sparse (projections.active < projections.count), or one of one");
  using chooser = router<width, O.projections>;
  using qkv_mixture = expert_mixture<O.projections.count, qkv>;
  using proj_mixture = expert_mixture<O.projections.count, proj>;
  static constexpr index bias_count = O.query_key_bias ? qk_width : 0,
                         gain_count = O.query_key_norm ? q_norm::parameter_count : 0;
  static constexpr index q_norm_at = bias_count, k_norm_at = q_norm_at + gain_count, router_at = k_norm_at + gain_count,
                         qkv_at = router_at + chooser::parameter_count, proj_at = qkv_at + qkv_mixture::parameter_count,
                         parameter_count = proj_at + proj_mixture::parameter_count;
  static constexpr rotary_spec rotary{D.rope_base, D.width_per_head(), D.context};

  template <class P>
  struct tape {
    tape_t<chooser, P> router;
    tape_t<qkv_mixture, P> in;
    tape_t<proj_mixture, P> out;
    rows<activation_t<P>, fused_width> fused;  // [q | k | v]; q and k rotated, unless they are normed
    rows<activation_t<P>, qk_width> normed;    // with norms: [q | k], normed and rotated
    statistic_t<P>* rstd = nullptr;            // with norms: (heads + kv_heads, tokens)
    rows<activation_t<P>, q_width> read;       // what the heads read, before the output projection
    statistic_t<P>* lse = nullptr;             // (tokens, heads)
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    const int d = D.width_per_head();
    if constexpr (O.query_key_bias) {
      if constexpr (D.key_value_heads() == D.heads)
        v.tensor(path{&at, "qk_bias"}, {2, 1, D.heads, d}, role::bias);
      else
        v.tensor(path{&at, "qk_bias"}, {D.heads + D.key_value_heads(), d}, role::bias);
    }
    if constexpr (O.query_key_norm) {
      q_norm::visit(v, path{&at, "q_norm"});
      k_norm::visit(v, path{&at, "k_norm"});
    }
    chooser::visit(v, path{&at, "router"});
    qkv_mixture::visit(v, path{&at, "Wqkv"});
    proj_mixture::visit(v, path{&at, "proj"});
    v.rotary(rotary);
  }

  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, width> x, rows<activation_t<P>, width> y,
                      tape<P>& t) {
    using T = activation_t<P>;
    t.fused = c.tape.template take_rows<T, fused_width>(x.count);
    t.read = c.tape.template take_rows<T, q_width>(x.count);
    chooser::forward(c, w + router_at, x, t.router);
    qkv_mixture::forward(c, w + qkv_at, t.router.choice, x, t.fused, t.in);
    if constexpr (O.query_key_norm) {
      t.normed = c.tape.template take_rows<T, qk_width>(x.count);
      t.rstd = c.tape.template take<statistic_t<P>>(q_norm::statistics(x.count) + k_norm::statistics(x.count));
      const matrix_view<const T> raw = t.fused.view();
      q_norm::forward(c, w + q_norm_at, D.norm_eps, raw.columns(0, q_width), t.normed.view().columns(0, q_width), t.rstd);
      k_norm::forward(c, w + k_norm_at, D.norm_eps, raw.columns(q_width, kv_width), t.normed.view().columns(q_width, kv_width),
                      t.rstd + q_norm::statistics(x.count));
    }
    c.device.rotary(query_key(t), O.query_key_bias ? w.data : nullptr, c.layout.positions(), c.tables.find(rotary), turned());
    const matrix_view<const T> qk = query_key(t), q = qk.columns(0, q_width), k = qk.columns(q_width, kv_width),
                               v = t.fused.view().columns(qk_width, kv_width);
    t.lse = c.tape.template take<statistic_t<P>>(x.count * D.heads);  // always: a plan holds with and without a cache
    if (c.lanes.empty()) {
      c.device.attention(q, k, v, c.layout, heads(), t.read.view(), t.lse);
    } else {
      c.device.cache_append(k, v, c.layout, c.lanes, c.cache_cursor);
      c.device.cached_attention(q, c.layout, c.lanes, c.cache_cursor, heads(), c.step, t.read.view());
      c.cache_cursor += cache_width;
    }
    proj_mixture::forward(c, w + proj_at, t.router.choice, rows<const T, q_width>(t.read), y, t.out);
  }

  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                       rows<const activation_t<P>, width> dy, rows<activation_t<P>, width> dx, bool accumulate = true) {
    using T = activation_t<P>;
    frame f(c.scratch);
    auto d_read = c.scratch.template take_rows<T, q_width>(dy.count);
    auto d_fused = c.scratch.template take_rows<T, fused_width>(dy.count);
    auto* d_gates = chooser::template open_gate_gradient<B, P>(c, dy.count);
    proj_mixture::backward(c, w + proj_at, dw + proj_at, t.router.choice, t.out, dy, d_read, d_gates, false);
    const matrix_view<const T> qk = query_key(t), v = t.fused.view().columns(qk_width, kv_width);
    matrix_view<T> d_qk = d_fused.view().columns(0, qk_width);  // of q and k as they were rotated
    if constexpr (O.query_key_norm) d_qk = c.scratch.template take_rows<T, qk_width>(dy.count).view();
    {
      frame g(c.scratch);
      auto* workspace = c.scratch.template take<statistic_t<P>>(B::attention_backward_workspace(dy.count, heads()));
      c.device.attention_backward(qk.columns(0, q_width), qk.columns(q_width, kv_width), v, matrix_view<const T>(t.read.view()),
                                  static_cast<const statistic_t<P>*>(t.lse), matrix_view<const T>(d_read.view()), c.layout,
                                  heads(), d_qk.columns(0, q_width), d_qk.columns(q_width, kv_width),
                                  d_fused.view().columns(qk_width, kv_width), workspace);
    }
    c.device.rotary_backward(d_qk, c.layout.positions(), c.tables.find(rotary), turned());
    if constexpr (O.query_key_bias) {
      frame g(c.scratch);
      auto* workspace = c.scratch.template take<gradient_t<P>>(B::column_sum_workspace(dy.count, qk_width));
      c.device.column_sum(matrix_view<const T>(d_qk), dw, workspace);
    }
    if constexpr (O.query_key_norm) {
      const matrix_view<const T> raw = t.fused.view(), d = d_qk;
      q_norm::backward(c, w + q_norm_at, dw + q_norm_at, raw.columns(0, q_width), t.rstd, d.columns(0, q_width),
                       d_fused.view().columns(0, q_width));
      k_norm::backward(c, w + k_norm_at, dw + k_norm_at, raw.columns(q_width, kv_width), t.rstd + q_norm::statistics(dy.count),
                       d.columns(q_width, kv_width), d_fused.view().columns(q_width, kv_width));
    }
    qkv_mixture::backward(c, w + qkv_at, dw + qkv_at, t.router.choice, t.in, rows<const T, fused_width>(d_fused), dx, d_gates,
                          accumulate);
    chooser::backward(c, w + router_at, dw + router_at, t.router, d_gates, dx);
  }

 private:
  // What attention reads as queries and keys.
  template <class P>
  static matrix_view<activation_t<P>> query_key(const tape<P>& t) {
    if constexpr (O.query_key_norm)
      return t.normed.view();
    else
      return t.fused.view().columns(0, qk_width);
  }
  static attention_shape heads() {
    return {D.heads, D.key_value_heads(), D.width_per_head(), 1 / std::sqrt(static_cast<double>(D.width_per_head()))};
  }
  static constexpr rotary_shape turned() { return {D.heads + D.key_value_heads(), D.width_per_head(), O.pairs}; }
};

GYRE_END
