// expect: sequence_attention: rotary encoding turns pairs, so the width of a head must be even
#include <gyre/compose/chain.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/model.hpp>

#ifdef GYRE_COMPILE_PASS
inline constexpr gyre::dims sizes{.vocab = 7, .width = 12, .heads = 3, .mlp = 6, .context = 5};
#else
inline constexpr gyre::dims sizes{.vocab = 7, .width = 9, .heads = 3, .mlp = 6, .context = 5};
#endif
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::recurrent<Block>> {};
static_assert(Model::parameter_count > 0);
