// expect: mixture: two branches of one kind would share their tensors' names
#include <gyre/compose/mixture.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>

inline constexpr gyre::dims sizes{.width = 16, .heads = 2, .mlp = 8, .context = 4};
inline constexpr gyre::experts rules{.count = 4, .active = 2, .router_width = 8};
#ifdef GYRE_COMPILE_PASS
using other = gyre::gated_mlp<sizes>;
#else
using other = gyre::sequence_attention<sizes>;
#endif
static_assert(gyre::mixture<gyre::sequential, gyre::sequence_attention<sizes>, other>::layers == 1);
