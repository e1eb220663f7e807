// expect: expert_attention: the shared expert must be a layer that keeps the width of the model, without a memory over depths
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>

inline constexpr gyre::dims sizes{.width = 16, .heads = 2, .mlp = 8, .context = 4};
inline constexpr gyre::experts rules{.count = 4, .active = 2, .router_width = 8};
#ifdef GYRE_COMPILE_PASS
using shared = gyre::gated_mlp<sizes>;
#else
using shared = gyre::linear<16, 8>;
#endif
static_assert(gyre::expert_attention<sizes, rules, gyre::gated_mlp<sizes>, shared>::parameter_count > 0);
