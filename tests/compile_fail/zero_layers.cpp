// expect: stack: there must be at least one layer
#include <gyre/compose/chain.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/model.hpp>

#ifdef GYRE_COMPILE_PASS
inline constexpr int count = 1;
#else
inline constexpr int count = 0;
#endif
inline constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 4, .mlp = 6, .context = 5};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::recurrent<gyre::stack<count, Block>>> {};
static_assert(Model::parameter_count > 0);
