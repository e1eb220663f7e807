// expect: sequence_attention: dims.context must be at least 1
#include <gyre/compose/chain.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/model.hpp>

#ifdef GYRE_COMPILE_PASS
inline constexpr gyre::dims sizes{.vocab = 3, .width = 8, .heads = 4, .mlp = 6, .context = 1};
#else
inline constexpr gyre::dims sizes{.vocab = 3, .width = 8, .heads = 4, .mlp = 6};
#endif
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::recurrent<Block>> {};
static_assert(Model::parameter_count > 0);
