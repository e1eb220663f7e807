// From an architecture's type to the numbers that its cost is computed from.
#pragma once

#include <type_traits>

#include <gyre/compose/checkpoint.hpp>
#include <gyre/compose/mixture.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/cost.hpp>
#include <gyre/model/model.hpp>

GYRE_BEGIN

namespace detail {

/// Reads sizes from layer types. A pointer finds the class that a named layer inherits from. What the closed form does not know
/// is answered with false.
struct size_reader {
  mixture_sizes s;
  bool known = true, biased = false;

  template <class L>
  constexpr void read() {
    layer(static_cast<const L*>(nullptr));
  }

 private:
  constexpr void layer(const void*) { known = false; }
  template <class L>
  constexpr void layer(const checkpoint<L>*) {
    read<L>();
  }
  template <int N, class L>
  constexpr void layer(const stack<N, L>*) {
    s.layers = s.depth = N;
    read<L>();
  }
  template <class Form, class... Branches>
  constexpr void layer(const mixture<Form, Branches...>*) {
    s.form = std::is_base_of_v<sequential, Form>   ? mixture_form::sequential
             : std::is_base_of_v<parallel_3, Form> ? mixture_form::parallel_3
                                                   : mixture_form::parallel_2;
    s.norms = std::is_same_v<typename Form::placement, pre_norm> ? mixture_norms::pre_norm : mixture_norms::branch_sandwich;
    s.state_norm = Form::norm_of_state;
    (branch(static_cast<const Branches*>(nullptr)), ...);
  }

  constexpr void branch(const void*) { known = false; }
  template <dims D, attention_options O>
  constexpr void branch(const sequence_attention<D, O>*) {
    s.heads = D.heads, s.kv_heads = D.key_value_heads();
    attention(D.width_per_head(), O.query_key_norm, O.norm_gain, O.projections);
    if (O.query_key_bias) biased = true;
  }
  template <dims D, depth_attention_options O>
  constexpr void branch(const gyre::depth_attention<D, O>*) {
    s.depth_heads = D.heads, s.depth_kv_heads = D.key_value_heads(), s.exclusive_depth = O.exclusive;
    attention(D.width_per_head(), O.query_key_norm, O.norm_gain, O.projections);
  }
  template <dims D>
  constexpr void branch(const gated_mlp<D>*) {
    one_mlp();
    s.shared_width = D.mlp;
  }
  template <dims D, experts O, class Expert, class Shared>
  constexpr void branch(const expert_attention<D, O, Expert, Shared>*) {
    one_mlp();
    s.experts = O.count, s.active = O.active;
    if (O.count < 2) known = false;
    router(O.router_width);
    s.expert_width = inner(static_cast<const Expert*>(nullptr));
    s.shared_width = inner(static_cast<const Shared*>(nullptr));
  }
  constexpr void attention(int head_width, bool normed, gain g, routing projections) {
    if (normed && g == gain::none) known = false;
    if (attentions_ > 0 && (s.head_width != head_width || s.query_key_norm != normed ||
                            s.projection_experts != projections.count || s.active_projections != projections.active))
      known = false;
    ++attentions_;
    s.head_width = head_width, s.query_key_norm = normed;
    s.projection_experts = projections.count, s.active_projections = projections.active;
    if (projections.count > 1) router(projections.router_width);
  }
  constexpr void one_mlp() {
    if (has_mlp_) known = false;
    has_mlp_ = true;
  }
  constexpr void router(int width) {
    if (s.router_width > 0 && s.router_width != width) known = false;
    s.router_width = width;
  }
  constexpr index inner(const void*) { return known = false, 0; }
  constexpr index inner(const no_shared_expert*) { return 0; }
  template <dims D>
  constexpr index inner(const gated_mlp<D>*) {
    return D.mlp;
  }

  int attentions_ = 0;
  bool has_mlp_ = false;
};

}  // namespace detail

/// The sizes of a model that is one mixture, applied `depth` times, or a stack of `depth` mixtures that runs once; attending over
/// a full context. The closed form knows mixtures of at most one attention of each kind and one MLP or expert attention, whose
/// attentions agree in head width, norms (with gains) and mixed projections and have no q/k bias, with experts that are gated MLPs; for
/// others, or with prelude, coda or injection, this fails to compile, and plan_pass tells the cost. Throws for another depth than a
/// stack has.
template <architecture A>
constexpr mixture_sizes sizes_of(index depth) {
  constexpr detail::size_reader reader = [] {
    detail::size_reader r;
    r.template read<typename A::loop::body>();
    return r;
  }();
  static_assert(!reader.biased,
                "sizes_of: the closed form of the cost knows no q/k bias (attention_options.query_key_bias = false)");
  static_assert(reader.known && !A::has_prelude && !A::has_coda && !A::loop::uses_input && A::loop::norm_follows == false &&
                    A::rules.final_gain == gain::learned,
                "sizes_of: the closed form of the cost does not know a part of this model; see sizes_of, or ask plan_pass");
  mixture_sizes s = reader.s;
  s.vocab = A::shape.vocab, s.width = A::width, s.context = A::shape.context, s.tied_head = A::rules.tied_head;
  if (s.layers == 1)
    s.depth = depth;
  else if (depth != s.layers)
    fail("sizes_of: a stack of ", s.layers, " layers has that depth, not ", depth);
  return s;
}

/// cost_of(sizes_of<A>(depth)).
template <architecture A>
constexpr mixture_cost cost(index depth) {
  return cost_of(sizes_of<A>(depth));
}

GYRE_END
