// What a training pass keeps for its backward pass, in closed form.
#pragma once

#include <algorithm>

#include <gyre/core/arena.hpp>
#include <gyre/model/cost.hpp>

GYRE_BEGIN

namespace detail {

/// Adds up what a pass takes from its tape, piece by piece as the layers do; pieces begin at whole lines.
struct tape_sum {
  exact_count tokens, pairs{}, scalar;  // bytes of a scalar
  exact_count bytes{};

  constexpr void take(exact_count scalars) { take_bytes(scalars * scalar); }
  constexpr void take_integers(exact_count count) { take_bytes(count * exact_count{4}); }
  constexpr void take_rows(exact_count cols) { take(tokens * cols); }
  constexpr void norm() { take_rows(exact_count{1}); }  // a factor a token
  /// A router, and the gathering of what it chose for a layer of those widths.
  constexpr void router(const model_sizes& s, exact_count experts, exact_count active) {
    take_rows(exact_count{s.router_width});
    pairs = tokens * active;
    take_integers(pairs), take(pairs), take(pairs);  // chosen, logits, gates
    take_integers(experts + exact_count{1}), take_integers(pairs), take_integers(pairs);
  }
  constexpr void gathered(exact_count in, exact_count out) { take(pairs * in), take(pairs * out); }

 private:
  constexpr void take_bytes(exact_count wanted) {
    constexpr index line = static_cast<index>(arena::alignment);
    bytes = bytes + exact_count{(wanted.value + line - 1) / line * line};
  }
};

constexpr void add_attention(tape_sum& sum, const model_sizes& s, bool over_depth) {
  using count = exact_count;
  const index heads = over_depth ? s.depth_heads : s.heads, kv_heads = over_depth ? s.depth_kv_heads : s.kv_heads;
  const count q = count{heads} * count{s.head_width}, kv = count{kv_heads} * count{s.head_width}, fused = q + count{2} * kv;
  sum.take_rows(fused), sum.take_rows(q);  // projected; what heads read
  sum.take_rows(count{heads});             // log-sum-exp
  if (over_depth) sum.take_rows(q);        // queries, normed and turned
  if (!over_depth && s.query_key_norm) sum.take_rows(q + kv);
  if (s.query_key_norm) sum.take_rows(count{heads + kv_heads});
  if (over_depth && !s.query_key_norm) sum.take(count{0});
  if (s.projection_experts > 1) {
    sum.router(s, count{s.projection_experts}, count{s.active_projections});
    sum.gathered(count{s.width}, fused), sum.gathered(q, count{s.width});
  }
}

constexpr void add_experts(tape_sum& sum, const model_sizes& s) {
  using count = exact_count;
  if (s.experts > 0) {
    sum.router(s, count{s.experts}, count{s.active});
    sum.gathered(count{s.width}, count{s.width});
    sum.take(sum.pairs * count{2 * s.expert_width}), sum.take(sum.pairs * count{s.expert_width});
    if (s.shared_width > 0) sum.take_rows(count{s.width});
  }
  if (s.shared_width > 0) sum.take_rows(count{2 * s.shared_width}), sum.take_rows(count{s.shared_width});
}

/// One layer at one depth, without the rows that it gives.
constexpr void add_mixture(tape_sum& sum, const model_sizes& s) {
  using count = exact_count;
  const count d{s.width};
  const int attentions = (s.depth_heads > 0) + (s.heads > 0), branches = attentions + 1;
  const bool sandwich = s.norms == branch_norms::branch_sandwich,
             before = sandwich || s.norms == branch_norms::sandwich || s.norms == branch_norms::pre_norm;
  // Branches beside each other: one normed input, what each gives, and that normed.
  const int beside = s.form == mixture_form::parallel_3 ? branches : s.form == mixture_form::parallel_2 ? attentions : 0;
  if (beside > 0) {
    sum.take_rows(d), sum.norm();
    for (int i = 0; i < beside; ++i) {
      sum.take_rows(d);
      if (sandwich) sum.take_rows(d), sum.norm();
    }
  }
  // Residual branches: a normed input, and what it gives where that is normed.
  for (int i = beside; i < branches; ++i) {
    if (before) sum.take_rows(d), sum.norm();
    if (s.norms != branch_norms::pre_norm) sum.take_rows(d), sum.norm();
  }
  // Between the parts that follow each other.
  const int parts = branches - (beside > 0 ? beside - 1 : 0);
  for (int i = 1; i < parts; ++i) sum.take_rows(d);
  if (s.state_norm) sum.take_rows(d), sum.norm();
  if (s.depth_heads > 0) add_attention(sum, s, true);
  if (s.heads > 0) add_attention(sum, s, false);
  add_experts(sum, s);
}

}  // namespace detail

/// Bytes of tape of a training pass over `tokens` tokens: what plan_pass tells for the compiled model, to the byte (but for the
/// padding of the very last piece). `scalar_bytes`: 4 in float, 8 in double.
constexpr index activation_bytes(const model_sizes& s, index tokens, index scalar_bytes = 4) {
  using count = detail::exact_count;
  if (const char* wrong = problem(s)) fail("activation_bytes: ", wrong);
  detail::tape_sum sum{count{tokens}, {}, count{scalar_bytes}};
  const auto rows = [&](index n) {
    for (index i = 0; i < n; ++i) sum.take_rows(count{s.width});
  };
  // Layers that follow each other, with what the last of them gives.
  const auto layers = [&](index n) {
    for (index i = 0; i < n; ++i) rows(1), detail::add_mixture(sum, s);
  };
  const index steps = s.steps(), with_gradient = s.steps_with_gradient();
  sum.take_rows(count{1});      // losses
  sum.take_integers(count{2});  // their sums, which fit in a line
  rows(3);                      // embedding, first state, input of the head
  if (s.injection == input_injection::concat) rows(1);
  rows((std::min)(steps - with_gradient, index{2}));  // states without gradient take turns
  if (s.depth_heads > 0) {
    // The memory over depths of every layer: a slot for each of its steps.
    const count kv = count{s.depth_kv_heads} * count{s.head_width};
    for (index i = 0; i < 2 * s.layers; ++i) sum.take_rows(count{steps} * kv);
    for (index i = 0; i < 2 * (s.prelude + s.coda); ++i) sum.take_rows(kv);
  }
  layers(s.prelude), layers(s.coda);
  for (index step = 0; step < with_gradient; ++step) {
    if (s.injection != input_injection::none) rows(1);
    layers(s.layers);
  }
  if (s.loop_norm) rows(1), sum.norm();
  sum.norm();
  return sum.bytes.value;
}

GYRE_END
