// Depth-recurrent attention mixtures and their layered baselines as models.
#pragma once

#include <gyre/compose/mixture.hpp>
#include <gyre/model/model.hpp>

GYRE_BEGIN

/// attention_mixtures: h_0 is the token's embedding, unscaled; one layer is applied as often as the run's depth rule says; the
/// output is head(N_f(h_D)), with a tied head. No prelude, coda or injection.
///   mixture_model<D, mixture<sequential, depth_attention<D>, sequence_attention<D>, expert_attention<D, …>>>   recurrent
///   mixture_model<D, stack<8, mixture<sequential, sequence_attention<D>, expert_attention<D, …>>>>             layered, at one step
///   mixture_model<D, stack<8, mixture<sequential, sequence_attention<D>, gated_mlp<D>>>>                       layered and dense
/// With pre_norm give mixture_initialisation<branches of a layer>, and the depth as dims.mean_steps (1 for a stack).
template <dims D, layer Layers, initialisation_scheme Scheme = mixture_initialisation<>>
struct mixture_model : model<D, recurrent<Layers, inject::none, initial_state::embedding, loop_norm::none>,
                             options<model_options{.embedding_scale = 1}>, initialised<Scheme>> {};

GYRE_END
