// expect: recurrent: without injection the state must start as the embedding (initial_state::embedding), or the model would never see its input
#include <gyre/compose/chain.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/model.hpp>

#ifdef GYRE_COMPILE_PASS
using start = gyre::initial_state::embedding;
#else
using start = gyre::initial_state::like_init;
#endif
inline constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 4, .mlp = 6, .context = 5};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::recurrent<Block, gyre::inject::none, start>> {};
static_assert(Model::parameter_count > 0);
