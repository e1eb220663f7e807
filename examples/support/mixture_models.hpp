// The models that the mixtures demo and the experiments compare: depth-recurrent mixtures and their layered baselines, matched in
// parameters and FLOPs. gyre::match_sizes has found the sizes; that they match is checked here.
#pragma once

#include <string_view>

#include <gyre/model/mixture_model.hpp>
#include <gyre/model/sizes_of.hpp>
#include <gyre/train/k_hops.hpp>
#include <gyre/train/permutations.hpp>

namespace examples {

/// Sizes that all of them share; one vocabulary serves both tasks.
inline constexpr gyre::dims four_heads{.vocab = gyre::permutations_task::vocabulary,
                                       .width = 64,
                                       .heads = 4,
                                       .kv_heads = 1,
                                       .head_width = 16,
                                       .mlp = 64,
                                       .context = gyre::permutations_task::most_length,
                                       .mean_steps = 8,
                                       .rope_base = 10000};
inline constexpr gyre::dims two_heads = [] {
  gyre::dims d = four_heads;
  d.heads = 2;
  return d;
}();
static_assert(gyre::k_hops_task::vocabulary <= gyre::permutations_task::vocabulary);

// Two of so many copies of the projections for each token and depth.
inline constexpr gyre::routing two_of_8{.count = 8, .active = 2, .router_width = 16};
inline constexpr gyre::routing two_of_14{.count = 14, .active = 2, .router_width = 16};
inline constexpr gyre::routing two_of_32{.count = 32, .active = 2, .router_width = 16};
inline constexpr gyre::attention_options mixture_attention(gyre::routing projections = {}) {
  return {.projections = projections, .query_key_bias = false, .query_key_norm = true};
}

/// A state that starts at RMS 1, so that the first branches do not drown the token: docs/evidence.md has what happens otherwise.
template <gyre::dims D, class Layers>
struct learning_model
    : gyre::mixture_model<D, Layers, gyre::unit_state<gyre::mixture_initialisation<>>, gyre::model_options{}> {};

/// A layer of the baseline: 8 experts of width 64, 2 of them for a token, and one shared.
inline constexpr gyre::experts layered_experts{.count = 8, .active = 2, .width = 64, .shared_width = 64, .router_width = 16};
struct layered_layer : gyre::mixture<gyre::sequential, gyre::sequence_attention<four_heads, mixture_attention()>,
                                     gyre::expert_attention<four_heads, layered_experts>> {};
struct layered_8 : learning_model<four_heads, gyre::stack<8, layered_layer>> {};
struct layered_16 : learning_model<four_heads, gyre::stack<16, layered_layer>> {};
struct layered_32 : learning_model<four_heads, gyre::stack<32, layered_layer>> {};

/// DR: one layer for 8 depths, with the experts of all of them.
inline constexpr gyre::experts recurrent_experts{
    .count = 144, .active = 2, .width = 32, .shared_width = 56, .router_width = 16};
struct recurrent_layer : gyre::mixture<gyre::sequential, gyre::sequence_attention<four_heads, mixture_attention(two_of_8)>,
                                       gyre::expert_attention<four_heads, recurrent_experts>> {};
struct recurrent_8 : learning_model<four_heads, recurrent_layer> {};

/// DR+DA: of four heads two read tokens and two read depths.
inline constexpr gyre::experts attending_experts{
    .count = 128, .active = 2, .width = 32, .shared_width = 34, .router_width = 16};
struct attending_layer
    : gyre::mixture<gyre::sequential, gyre::depth_attention<two_heads, gyre::depth_attention_options{.projections = two_of_14}>,
                    gyre::sequence_attention<two_heads, mixture_attention(two_of_14)>,
                    gyre::expert_attention<two_heads, attending_experts>> {};
struct attending_8 : learning_model<two_heads, attending_layer> {};

/// The same for 16 depths.
inline constexpr gyre::experts attending_experts_16{
    .count = 256, .active = 2, .width = 32, .shared_width = 20, .router_width = 16};
struct attending_layer_16
    : gyre::mixture<gyre::sequential, gyre::depth_attention<two_heads, gyre::depth_attention_options{.projections = two_of_32}>,
                    gyre::sequence_attention<two_heads, mixture_attention(two_of_32)>,
                    gyre::expert_attention<two_heads, attending_experts_16>> {};
struct attending_16 : learning_model<two_heads, attending_layer_16> {};

/// Whether A costs within 2% what Baseline costs, in parameters and in forward and backward FLOPs a token, for rows of `tokens`.
template <gyre::architecture A, gyre::architecture Baseline>
constexpr bool mixtures_match(gyre::index depth, gyre::index tokens) {
  const auto cost = [&]<class M>() {
    gyre::model_sizes sizes = gyre::sizes_of<M>(depth);
    sizes.context = tokens;
    return gyre::cost_of(sizes).total();
  };
  const gyre::cost_share a = cost.template operator()<A>(), b = cost.template operator()<Baseline>();
  const auto close = [](gyre::index x, gyre::index y) { return 50 * (x > y ? x - y : y - x) <= y; };
  return close(a.parameters, b.parameters) && close(a.forward, b.forward) && close(a.backward, b.backward);
}
// At the lengths of both tasks.
static_assert(mixtures_match<recurrent_8, layered_8>(8, 48) && mixtures_match<recurrent_8, layered_8>(8, 10));
static_assert(mixtures_match<attending_8, layered_8>(8, 48) && mixtures_match<attending_8, layered_8>(8, 10));
static_assert(mixtures_match<attending_16, layered_16>(16, 48) && mixtures_match<attending_16, layered_16>(16, 10));

}  // namespace examples
