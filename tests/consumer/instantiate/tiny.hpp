#pragma once

#include <gyre/gyre.hpp>

namespace mine {

inline constexpr gyre::dims tiny{.vocab = 7, .width = 8, .heads = 2, .mlp = 12, .context = 5};
struct Block : gyre::sandwich_block<gyre::sequence_attention<tiny>, gyre::gated_mlp<tiny>> {};
struct Tiny : gyre::model<tiny, gyre::recurrent<Block>> {};

}  // namespace mine
