// Depth-recurrent attention mixtures and their layered baselines as models.
#pragma once

#include <gyre/compose/mixture.hpp>
#include <gyre/model/model.hpp>

GYRE_BEGIN

namespace detail {
template <class L>
constexpr int unnormed_branches(const L*) {
  if constexpr (requires { L::unnormed_branches; })
    return L::unnormed_branches;
  else
    return 0;
}
template <int N, class L>
constexpr int unnormed_branches(const stack<N, L>*) {
  return unnormed_branches(static_cast<const L*>(nullptr));
}
}  // namespace detail

/// attention_mixtures: h_0 is the token's embedding; one layer is applied as often as the run's depth rule says; the
/// output is head(N_f(h_D)), with a tied head. No prelude, coda or injection.
///   mixture_model<D, mixture<sequential, depth_attention<D>, sequence_attention<D>, expert_attention<D, …>>>   recurrent
///   mixture_model<D, stack<8, mixture<sequential, sequence_attention<D>, expert_attention<D, …>>>>             layered, at one step
///   mixture_model<D, stack<8, mixture<sequential, sequence_attention<D>, gated_mlp<D>>>>                       layered and dense
/// With pre_norm the initialisation takes the depth from dims.mean_steps (1 for a stack that runs once).
///
/// The embedding starts at a standard deviation of 0.02 and is not scaled, but every branch that is normed adds a vector of RMS 1:
/// what a token is drowns in what the first attention reads, which differs little from token to token. To start with an h_0 of
/// RMS 1 give unit_state<mixture_initialisation<>> and model_options{}; the models of the examples learn with these (ours).
template <dims D, layer Layers,
          initialisation_scheme Scheme = mixture_initialisation<detail::unnormed_branches(static_cast<const Layers*>(nullptr))>,
          model_options Options = model_options{.embedding_scale = 1}>
struct mixture_model : model<D, recurrent<Layers, inject::none, initial_state::embedding, loop_norm::none>, options<Options>,
                             initialised<Scheme>> {};

GYRE_END
