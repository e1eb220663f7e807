// expect: expert_mixture: an expert must not have a memory over depths, for its rows change
#include <gyre/layers/expert_attention.hpp>

inline constexpr gyre::dims sizes{.width = 16, .heads = 2, .mlp = 8, .context = 4};
#ifdef GYRE_COMPILE_PASS
#include <gyre/layers/depth_attention.hpp>
using expert = gyre::gated_mlp<sizes>;
#else
#include <gyre/layers/depth_attention.hpp>
using expert = gyre::depth_attention<sizes>;
#endif
static_assert(gyre::expert_attention<sizes, gyre::experts{.count = 2}, expert>::parameter_count > 0);
