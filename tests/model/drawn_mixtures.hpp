// Mixtures of sizes drawn at compile time, and their cost in closed form against what the dry backend counts when it runs the model.
#pragma once

#include <gyre/model/sizes_of.hpp>

#include <array>
#include <catch2/catch.hpp>
#include <utility>

#include <gyre/backend/cpu.hpp>
#include <gyre/model/activation_memory.hpp>
#include <gyre/model/mixture_model.hpp>
#include <gyre/model/pass.hpp>

namespace gyre_test {

/// Numbers that look random, at compile time.
struct draws {
  std::uint64_t state;
  constexpr int operator()(int low, int high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + static_cast<int>((state >> 33) % static_cast<std::uint64_t>(high - low + 1));
  }
};

struct configuration {
  gyre::dims sizes;
  gyre::routing maps;
  gyre::experts experts;
  bool exclusive, depth_attention, shared;
  int form, depth, depth_kv_heads;
};
constexpr configuration drawn_configuration(int number) {
  draws d{static_cast<std::uint64_t>(number) * 77 + 5};
  for (int i = 0; i < 5; ++i) d(0, 1);
  configuration c{};
  c.sizes.vocab = d(3, 60), c.sizes.context = d(1, 20), c.sizes.width = d(1, 6) * 4, c.sizes.mlp = d(1, 9);
  c.sizes.kv_heads = d(1, 3), c.sizes.heads = c.sizes.kv_heads * d(1, 3), c.sizes.head_width = 4 * d(1, 3);
  c.maps.count = d(1, 4), c.maps.active = c.maps.count > 1 ? d(1, c.maps.count - 1) : 1;
  c.maps.router_width = c.experts.router_width = 4 * d(1, 3);
  c.experts.count = d(2, 9), c.experts.active = d(1, c.experts.count);
  c.experts.width = d(0, 1) * d(1, 9), c.experts.shared_width = d(0, 1) * d(1, 9);
  c.exclusive = d(0, 1) == 1, c.depth_attention = d(0, 2) > 0, c.shared = d(0, 3) > 0;
  c.form = d(0, 5), c.depth = d(1, 7), c.depth_kv_heads = d(1, 2);
  return c;
}

template <int Number>
struct drawn_mixture {
  static constexpr configuration c = drawn_configuration(Number);
  static constexpr gyre::dims sizes = c.sizes;
  static constexpr gyre::dims depth_sizes = [] {
    gyre::dims d = drawn_configuration(Number).sizes;
    d.kv_heads = drawn_configuration(Number).depth_kv_heads, d.heads = 2 * d.kv_heads;
    return d;
  }();
  using expert = gyre::gated_mlp<gyre::detail::with_mlp(sizes, c.experts.width)>;
  using shared = std::conditional_t<
      c.shared, gyre::gated_mlp<gyre::detail::with_mlp(sizes, gyre::detail::or_else(c.experts.shared_width, c.experts.width))>,
      gyre::no_shared_expert>;
  using ea = gyre::expert_attention<sizes, c.experts, expert, shared>;
  using sa = gyre::sequence_attention<sizes, gyre::attention_options{
                                                 .projections = c.maps, .query_key_bias = false, .query_key_norm = true}>;
  using da = gyre::depth_attention<depth_sizes, gyre::depth_attention_options{.projections = c.maps, .exclusive = c.exclusive}>;
  using basic = std::conditional_t<c.form % 3 == 0, gyre::sequential,
                                   std::conditional_t<c.form % 3 == 1, gyre::parallel_3, gyre::parallel_2>>;
  using form = std::conditional_t < c.form<3, basic, gyre::with_norms<basic, gyre::pre_norm, gyre::state_norm::yes>>;
  using layer = std::conditional_t<c.depth_attention, gyre::mixture<form, da, sa, ea>, gyre::mixture<form, sa, ea>>;
  struct model : gyre::mixture_model<sizes, layer> {};
};

template <class A>
void check_counts(int depth, gyre::index steps) {
  const gyre::model_cost cost = gyre::cost<A>(depth);
  gyre::index learned = 0;
  for (const gyre::tensor_entry& e : gyre::parameter_table<A>::entries)
    if (gyre::learns(e.kind)) learned += e.shape.size();
  CHECK(cost.parameters() == learned);
  const gyre::index tokens = A::shape.context;
  const auto layout = gyre::batch_layout::uniform(1, tokens);
  const auto flops = [&](bool gradients) {
    const gyre::depth_draw draw =
        gradients ? gyre::depth_draw{0, static_cast<int>(steps)} : gyre::depth_draw{static_cast<int>(steps), 0};
    return gyre::plan_pass<A, gyre::cpu, gyre::fp32>(layout, draw, gradients).total().product_flops;
  };
  CHECK(flops(false) == static_cast<double>(tokens * cost.forward()));
  CHECK(flops(true) - flops(false) == static_cast<double>(tokens * cost.backward()));
  for (const gyre::index rows : {gyre::index{1}, gyre::index{3}}) {
    const auto batch = gyre::batch_layout::uniform(rows, tokens);
    const auto plan = gyre::plan_pass<A, gyre::cpu, gyre::fp32>(batch, {0, static_cast<int>(steps)}, true);
    const gyre::index whole = gyre::activation_bytes(gyre::sizes_of<A>(depth), rows * tokens);
    CHECK(whole - 64 < static_cast<gyre::index>(plan.tape_bytes));
    CHECK(static_cast<gyre::index>(plan.tape_bytes) <= whole);
    const auto exact = gyre::plan_pass<A, gyre::cpu, gyre::fp64>(batch, {0, static_cast<int>(steps)}, true);
    CHECK((static_cast<gyre::index>(exact.tape_bytes) + 63) / 64 * 64 ==
          gyre::activation_bytes(gyre::sizes_of<A>(depth), rows * tokens, 8));
  }
  CHECK(cost.sequence_cache == tokens * (A::fixed_cache_width + steps * A::step_cache_width));
}

template <int First, int... I>
void check_drawn(std::integer_sequence<int, I...>) {
  const auto check = []<int Number>() {
    using of = drawn_mixture<Number>;
    CAPTURE(Number);
    check_counts<typename of::model>(of::c.depth, of::c.depth);
  };
  (check.template operator()<First + I>(), ...);
}

}  // namespace gyre_test
