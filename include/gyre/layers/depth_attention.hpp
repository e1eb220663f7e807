// Attention of a token over its own earlier recurrence steps.
#pragma once

#include <algorithm>
#include <cmath>

#include <gyre/core/dims.hpp>
#include <gyre/layers/depth_turn.hpp>
#include <gyre/layers/expert_mixture.hpp>
#include <gyre/layers/head_norm.hpp>
#include <gyre/layers/linear.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

/// Rules of a depth attention. All but `encoding` are ours: the paper does not tell them.
struct depth_attention_options {
  routing projections{};  // of several copies of the four projections, as in sequence attention: one choice a token and depth
  depth_encoding encoding = depth_encoding::split;
  double base = 10000;             // of the encoding
  bool exclusive = false;          // reads the steps before its own only; at the first step the result is 0
  gain norm_gain = gain::learned;  // of the norms of q and k
  bool query_key_norm = true;      // RMSNorm of every head's q and k, before the encoding
  constexpr bool operator==(const depth_attention_options&) const = default;
};

/// attention_mixtures, section 3: o_l = sum_{j <= l} softmax_j(RoSE(q_l) . RoSE(k_j) / sqrt(d)) v_j for every token alone, then an
/// output projection; fused Wqkv with rows [q heads | k heads | v heads], no bias. Keys and values of all steps are the carry
/// of the recurrence: those of steps without gradient are constants. Outside a recurrence there is one step.
template <dims D, depth_attention_options O = depth_attention_options{}>
struct depth_attention {
  static_assert(D.width > 0, "depth_attention: dims.width must be at least 1");
  static_assert(D.heads > 0, "depth_attention: dims.heads must be at least 1");
  static_assert(D.head_width > 0 || D.heads <= 0 || D.width % D.heads == 0,
                "depth_attention: dims.width must be a multiple of dims.heads, or give dims.head_width");
  static_assert(D.heads <= 0 || D.heads % (D.key_value_heads() > 0 ? D.key_value_heads() : 1) == 0,
                "depth_attention: dims.heads must be a multiple of dims.kv_heads");
  static_assert(O.encoding != depth_encoding::forward || D.width_per_head() % 2 == 0,
                "depth_attention: the forward encoding turns pairs, so the width of a head must be even");
  static_assert(
      O.encoding != depth_encoding::split || D.width_per_head() % 4 == 0,
      "depth_attention: the split encoding turns two halves of pairs, so the width of a head must be a multiple of 4");

  static constexpr dims shape = D;
  static constexpr std::string_view name = "depth_attn";
  static constexpr int width = D.width, inputs = width, outputs = width, head_width = D.width_per_head();
  static constexpr int q_width = D.query_width(), kv_width = D.key_value_width(), qk_width = q_width + kv_width;
  static constexpr int fused_width = qk_width + kv_width;
  static constexpr bool backward_assigns = true;
  using qkv = linear<width, fused_width, linear_options{role::input_projection, {{q_width, kv_width, kv_width}}}>;
  using proj = linear<q_width, width, linear_options{role::output_projection}>;
  using q_norm = head_norm<D.heads, head_width, O.norm_gain>;
  using k_norm = head_norm<D.key_value_heads(), head_width, O.norm_gain>;
  static_assert(
      O.projections.count == 1 ? O.projections.active == 1 : O.projections.active < O.projections.count,
      "depth_attention: a mixture of projections must be sparse (projections.active < projections.count), or one of one");
  using chooser = router<width, O.projections>;
  using qkv_mixture = expert_mixture<O.projections.count, qkv>;
  using proj_mixture = expert_mixture<O.projections.count, proj>;
  static constexpr index k_norm_at = O.query_key_norm ? q_norm::parameter_count : 0;
  static constexpr index router_at = 2 * k_norm_at, qkv_at = router_at + chooser::parameter_count;
  static constexpr index proj_at = qkv_at + qkv_mixture::parameter_count;
  static constexpr index parameter_count = proj_at + proj_mixture::parameter_count;

  template <class P>
  struct tape {
    tape_t<chooser, P> router;
    tape_t<qkv_mixture, P> in;
    tape_t<proj_mixture, P> out;
    rows<activation_t<P>, fused_width> fused;  // [q | k | v] as projected
    rows<activation_t<P>, q_width> query;      // q as it is read: normed and turned
    rows<activation_t<P>, q_width> read;       // what the heads read, before the output projection
    statistic_t<P>* rstd = nullptr;            // (heads + kv_heads, tokens), of the norms
    statistic_t<P>* lse = nullptr;             // (tokens, heads)
  };
  template <class P>
  struct carry {
    activation_t<P>*keys = nullptr, *values = nullptr;  // (steps, tokens, kv_width)
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    if constexpr (O.query_key_norm) {
      q_norm::visit(v, path{&at, "q_norm"});
      k_norm::visit(v, path{&at, "k_norm"});
    }
    chooser::visit(v, path{&at, "router"});
    qkv_mixture::visit(v, path{&at, "Wqkv"});
    proj_mixture::visit(v, path{&at, "proj"});
  }

  template <class B, class P>
  static void open_carry(context<B, P>& c, arena& memory, index tokens, int steps, carry<P>& k) {
    for (auto* slots : {&k.keys, &k.values}) {
      *slots = memory.template take<activation_t<P>>(steps * tokens * kv_width);
      c.device.fill(matrix_view<activation_t<P>>(*slots, steps * tokens, kv_width), activation_t<P>(0));
    }
  }

  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, width> x, rows<activation_t<P>, width> y,
                      tape<P>& t, carry<P>& k) {
    using T = activation_t<P>;
    const index tokens = x.count;
    const int step = detail::depth_of(c).step;
    t.fused = c.tape.template take_rows<T, fused_width>(tokens);
    t.query = c.tape.template take_rows<T, q_width>(tokens);
    t.read = c.tape.template take_rows<T, q_width>(tokens);
    t.rstd = c.tape.template take<statistic_t<P>>(O.query_key_norm ? tokens * (D.heads + D.key_value_heads()) : 0);
    t.lse = c.tape.template take<statistic_t<P>>(tokens * D.heads);
    chooser::forward(c, w + router_at, x, t.router);
    qkv_mixture::forward(c, w + qkv_at, t.router.choice, x, t.fused, t.in);
    const matrix_view<const T> fused = t.fused.view();
    const matrix_view<T> key = slot(k.keys, step, tokens), value = slot(k.values, step, tokens);
    ready<q_norm>(c, w, fused.columns(0, q_width), t.query.view(), t.rstd);
    ready<k_norm>(c, w + k_norm_at, fused.columns(q_width, kv_width), key, t.rstd + q_norm::statistics(tokens));
    c.device.copy(fused.columns(qk_width, kv_width), value);
    const index seen = (step + (O.exclusive ? 0 : 1)) * tokens;
    c.device.depth_attention(matrix_view<const T>(t.query.view()), slots(k.keys, seen), slots(k.values, seen), heads(),
                             t.read.view(), t.lse);
    if (c.observer != nullptr && c.observer->hears_of_depths()) {
      c.device.finish();  // observers read on the host
      const detail::depth_place at = detail::depth_of(c);
      c.observer->read_depths({w.place, at.step, at.steps, t.query.view(), slots(k.keys, seen), heads(), t.lse, c.layout});
    }
    proj_mixture::forward(c, w + proj_at, t.router.choice, rows<const T, q_width>(t.read), y, t.out);
  }

  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                       rows<const activation_t<P>, width> dy, rows<activation_t<P>, width> dx, const carry<P>& k, carry<P>& dk,
                       bool accumulate = true) {
    using T = activation_t<P>;
    const index tokens = dy.count;
    const int step = detail::depth_of(c).step;
    frame f(c.scratch);
    auto d_read = c.scratch.template take_rows<T, q_width>(tokens), d_query = c.scratch.template take_rows<T, q_width>(tokens);
    auto d_fused = c.scratch.template take_rows<T, fused_width>(tokens);
    auto* d_gates = chooser::template open_gate_gradient<B, P>(c, tokens);
    proj_mixture::backward(c, w + proj_at, dw + proj_at, t.router.choice, t.out, dy, d_read, d_gates, false);
    const index seen = (step + (O.exclusive ? 0 : 1)) * tokens;
    c.device.depth_attention_backward(matrix_view<const T>(t.query.view()), slots(k.keys, seen), slots(k.values, seen),
                                      matrix_view<const T>(t.read.view()), static_cast<const statistic_t<P>*>(t.lse),
                                      matrix_view<const T>(d_read.view()), heads(), d_query.view(),
                                      matrix_view<T>(dk.keys, seen, kv_width), matrix_view<T>(dk.values, seen, kv_width));
    // Later steps have been here already: the gradient of this step's slot is complete.
    const matrix_view<const T> fused = t.fused.view();
    const matrix_view<T> d = d_fused.view();
    unready<q_norm>(c, w, dw, fused.columns(0, q_width), t.rstd, d_query.view(), d.columns(0, q_width));
    unready<k_norm>(c, w + k_norm_at, dw + k_norm_at, fused.columns(q_width, kv_width), t.rstd + q_norm::statistics(tokens),
                    slot(dk.keys, step, tokens), d.columns(q_width, kv_width));
    c.device.copy(matrix_view<const T>(slot(dk.values, step, tokens)), d.columns(qk_width, kv_width));
    qkv_mixture::backward(c, w + qkv_at, dw + qkv_at, t.router.choice, t.in, rows<const T, fused_width>(d_fused), dx, d_gates,
                          accumulate);
    chooser::backward(c, w + router_at, dw + router_at, t.router, d_gates, dx);
  }

 private:
  template <class T>
  static matrix_view<T> slot(T* first, int step, index tokens) {
    return {first + step * tokens * kv_width, tokens, kv_width};
  }
  template <class T>
  static matrix_view<const T> slots(const T* first, index count) {
    return {first, count, kv_width};
  }
  static attention_shape heads() {
    return {D.heads, D.key_value_heads(), head_width, 1 / std::sqrt(static_cast<double>(head_width))};
  }

  // Norm of every head, then the encoding: from x (tokens, heads * head_width) to y.
  template <class Norm, class B, class P, class T, class S>
  static void ready(context<B, P>& c, weights<B, P> w, matrix_view<const T> x, matrix_view<T> y, S* rstd) {
    if constexpr (O.query_key_norm)
      Norm::forward(c, w, D.norm_eps, x, y, rstd);
    else
      c.device.copy(x, y);
    detail::turn_by_depth<head_width>(c, O.encoding, O.base, y, false);
  }
  // The gradient of x, assigned, from that of y, which is turned back in place.
  template <class Norm, class B, class P, class T, class S, class G>
  static void unready(context<B, P>& c, weights<B, P> w, G* dw, matrix_view<const T> x, const S* rstd, matrix_view<T> dy,
                      matrix_view<T> dx) {
    detail::turn_by_depth<head_width>(c, O.encoding, O.base, dy, true);
    if constexpr (O.query_key_norm)
      Norm::backward(c, w, dw, x, rstd, matrix_view<const T>(dy), dx);
    else
      c.device.copy(matrix_view<const T>(dy), dx);
  }
};

GYRE_END
