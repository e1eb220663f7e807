// expect: block: attention and MLP must have the same width
#include <gyre/compose/chain.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/model.hpp>

#ifdef GYRE_COMPILE_PASS
inline constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 4, .mlp = 6, .context = 5};
inline constexpr gyre::dims other{.vocab = 7, .width = 8, .heads = 4, .mlp = 9, .context = 5};
#else
inline constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 4, .mlp = 6, .context = 5};
inline constexpr gyre::dims other{.vocab = 7, .width = 12, .heads = 4, .mlp = 6, .context = 5};
#endif
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<other>> {};
static_assert(Block::parameter_count > 0);
