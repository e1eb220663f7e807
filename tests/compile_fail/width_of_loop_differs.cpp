// expect: model: the recurrence's width must be dims.width
#include <gyre/compose/chain.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/model.hpp>

#ifdef GYRE_COMPILE_PASS
inline constexpr gyre::dims whole{.vocab = 9, .width = 8, .heads = 4, .mlp = 6, .context = 5};
#else
inline constexpr gyre::dims whole{.vocab = 7, .width = 12, .heads = 4, .mlp = 6, .context = 5};
#endif
inline constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 4, .mlp = 6, .context = 5};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<whole, gyre::recurrent<Block>> {};
static_assert(Model::parameter_count > 0);
