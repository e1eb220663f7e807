// From an architecture's type to the numbers that its cost is computed from.
#pragma once

#include <type_traits>

#include <gyre/compose/checkpoint.hpp>
#include <gyre/compose/mixture.hpp>
#include <gyre/compose/residual.hpp>
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
  model_sizes s;
  bool known = true;

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
  /// A block.
  template <class First, class... Rest>
  constexpr void layer(const chain<First, Rest...>*) {
    first_ = true;
    residual_branch(static_cast<const First*>(nullptr));
    (residual_branch(static_cast<const Rest*>(nullptr)), ...);
  }
  constexpr void residual_branch(const void*) { known = false; }
  template <class Placement, class Branch, gain G, int Number>
  constexpr void residual_branch(const residual<Placement, Branch, G, Number>*) {
    const branch_norms norms = std::is_same_v<Placement, pre_norm>           ? branch_norms::pre_norm
                               : std::is_same_v<Placement, sandwich>         ? branch_norms::sandwich
                               : std::is_same_v<Placement, branch_sandwich>  ? branch_norms::branch_sandwich
                               : std::is_same_v<Placement, branch_post_norm> ? branch_norms::branch_post_norm
                                                                             : branch_norms::post_norm;
    if (!first_ && (s.norms != norms || s.norm_gains != (G == gain::learned))) known = false;
    first_ = false;
    s.norms = norms, s.norm_gains = G == gain::learned;
    branch(static_cast<const Branch*>(nullptr));
  }
  template <class Form, class... Branches>
  constexpr void layer(const mixture<Form, Branches...>*) {
    s.form = std::is_base_of_v<sequential, Form>   ? mixture_form::sequential
             : std::is_base_of_v<parallel_3, Form> ? mixture_form::parallel_3
                                                   : mixture_form::parallel_2;
    s.norms = std::is_same_v<typename Form::placement, pre_norm> ? branch_norms::pre_norm : branch_norms::branch_sandwich;
    s.state_norm = Form::norm_of_state;
    (branch(static_cast<const Branches*>(nullptr)), ...);
  }

  constexpr void branch(const void*) { known = false; }
  template <dims D, attention_options O>
  constexpr void branch(const sequence_attention<D, O>*) {
    s.heads = D.heads, s.kv_heads = D.key_value_heads();
    attention(D.width_per_head(), O.query_key_norm, O.norm_gain, O.projections);
    s.query_key_bias = O.query_key_bias;
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
    if (normed && g == gain::none) known = false;  // norms without weights are counted with theirs
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
  bool has_mlp_ = false, first_ = true;
};

template <class Layers>
constexpr size_reader read_sizes() {
  size_reader r;
  r.template read<Layers>();
  return r;
}
/// The layers of a section beside the recurrence, which must be of the kind of the recurrence's.
template <class Layers>
constexpr index count_alike(size_reader& all) {
  size_reader section = read_sizes<Layers>();
  const index count = section.s.layers;
  section.s.layers = all.s.layers, section.s.depth = all.s.depth;
  if (!section.known || !(section.s == all.s)) all.known = false;
  return count;
}
template <class Loop>
constexpr input_injection injection_of() {
  if constexpr (!Loop::uses_input)
    return input_injection::none;
  else
    return Loop::injection::parameter_count > 0 ? input_injection::concat : input_injection::add;
}

}  // namespace detail

/// The sizes of a model whose token passes `depth` layers in the recurrence, `gradient_steps` of its steps with backpropagation (0:
/// all); attending over a full context. The closed form knows layers of at most one attention of each kind and one gated MLP or
/// expert attention, as blocks with any placement of norms or as mixtures, whose attentions agree in head width, norms (with
/// gains) and mixed projections, with experts that are gated MLPs; prelude and coda of the same layers; and every injection. Others
/// fail to compile; plan_pass tells their cost. Throws for a depth that is no multiple of the layers of a step.
template <architecture A>
constexpr model_sizes sizes_of(index depth, index gradient_steps = 0) {
  constexpr detail::size_reader reader = [] {
    detail::size_reader r = detail::read_sizes<typename A::loop::body>();
    index prelude = 0, coda = 0;
    if constexpr (A::has_prelude) prelude = detail::count_alike<typename A::prelude_layers>(r);
    if constexpr (A::has_coda) coda = detail::count_alike<typename A::coda_layers>(r);
    r.s.prelude = prelude, r.s.coda = coda;
    return r;
  }();
  static_assert(reader.known,
                "sizes_of: the closed form of the cost does not know a part of this model; see sizes_of, or ask plan_pass");
  model_sizes s = reader.s;
  s.vocab = A::shape.vocab, s.width = A::width, s.context = A::shape.context, s.tied_head = A::rules.tied_head;
  s.injection = detail::injection_of<typename A::loop>();
  s.loop_norm = A::loop::norm_follows, s.final_gain = A::rules.final_gain == gain::learned;
  if (depth < s.layers || depth % s.layers != 0)
    fail("sizes_of: a depth of ", depth, " is no multiple of the ", s.layers, " layers of a step");
  s.depth = depth, s.gradient_steps = gradient_steps;
  return s;
}

/// cost_of(sizes_of<A>(depth, gradient_steps)).
template <architecture A>
constexpr model_cost cost(index depth, index gradient_steps = 0) {
  return cost_of(sizes_of<A>(depth, gradient_steps));
}

GYRE_END
