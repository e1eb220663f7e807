// expect: model: a part is neither prelude, recurrent, coda, options nor initialised
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/model.hpp>

inline constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 4, .mlp = 6, .context = 5};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
#ifdef GYRE_COMPILE_PASS
using extra = gyre::coda<Block>;
#else
using extra = Block;
#endif
struct Model : gyre::model<sizes, gyre::recurrent<Block>, extra> {};
static_assert(Model::parameter_count > 0);
