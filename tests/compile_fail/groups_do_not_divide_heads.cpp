// expect: sequence_attention: dims.heads must be a multiple of dims.kv_heads
#include <gyre/compose/chain.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/model.hpp>

#ifdef GYRE_COMPILE_PASS
inline constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 4, .kv_heads = 2, .mlp = 6, .context = 5};
#else
inline constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 4, .kv_heads = 3, .mlp = 6, .context = 5};
#endif
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::recurrent<Block>> {};
static_assert(Model::parameter_count > 0);
