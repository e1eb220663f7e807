// expect: chain: the output width of a layer must equal the input width of the layer after it
#include <gyre/compose/chain.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/model.hpp>

#ifdef GYRE_COMPILE_PASS
inline constexpr int into = 6;
#else
inline constexpr int into = 7;
#endif
using Layers = gyre::chain<gyre::linear<8, 6>, gyre::linear<into, 8>>;
static_assert(Layers::parameter_count > 0);
