// Models of every policy, for gradient tests.
#pragma once

#include <gyre/compose/chain.hpp>
#include <gyre/compose/checkpoint.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/model.hpp>

namespace gyre_test::variants {

inline constexpr gyre::dims plain{.vocab = 7, .width = 8, .heads = 4, .mlp = 6, .context = 5};
inline constexpr gyre::dims grouped{.vocab = 7, .width = 8, .heads = 4, .kv_heads = 2, .mlp = 6, .context = 5};
inline constexpr gyre::dims wide_heads{.vocab = 7, .width = 8, .heads = 2, .head_width = 6, .mlp = 6, .context = 5};
inline constexpr gyre::attention_options standard{};
inline constexpr gyre::attention_options half{.pairs = gyre::pairing::half_split};
inline constexpr gyre::attention_options half_without_bias{.pairs = gyre::pairing::half_split, .query_key_bias = false};

template <class Placement, gyre::gain Gain, gyre::dims D, gyre::attention_options O>
struct Block : gyre::block<Placement, gyre::sequence_attention<D, O>, gyre::gated_mlp<D>, Gain> {};
template <class Block, gyre::dims D, class Injection, class State, class Norm, gyre::model_options O>
struct Model : gyre::model<D, gyre::prelude<Block>, gyre::recurrent<gyre::stack<2, Block>, Injection, State, Norm>,
                           gyre::coda<Block>, gyre::options<O>> {};

using gyre::gain;
namespace inject = gyre::inject;
namespace state = gyre::initial_state;
namespace norms = gyre::loop_norm;
inline constexpr gyre::model_options tied{}, untied{.tied_head = false, .embedding_scale = 1};

using SandwichGrouped =
    Model<Block<gyre::sandwich, gain::learned, grouped, half>, grouped, inject::concat, state::like_init, norms::after, tied>;
using SandwichBare =
    Model<Block<gyre::sandwich, gain::none, plain, standard>, plain, inject::add, state::normal, norms::after, tied>;
using PreNorm = Model<Block<gyre::pre_norm, gain::learned, plain, half_without_bias>, plain, inject::concat, state::unit,
                      norms::none, untied>;
using BranchSandwich = Model<Block<gyre::branch_sandwich, gain::learned, wide_heads, standard>, wide_heads, inject::none,
                             state::embedding, norms::after, untied>;
using BranchPost = Model<Block<gyre::branch_post_norm, gain::learned, grouped, standard>, grouped, inject::add, state::zero,
                         norms::none, tied>;
using Post = Model<Block<gyre::post_norm, gain::none, plain, half>, plain, inject::concat, state::like_init_unscaled,
                   norms::after, untied>;

}  // namespace gyre_test::variants
