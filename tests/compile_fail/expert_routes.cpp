// expect: expert_mixture: an expert must treat rows one by one; attention over the sequence and routers need whole batches
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>

inline constexpr gyre::dims sizes{.width = 16, .heads = 2, .mlp = 8, .context = 4};
inline constexpr gyre::experts rules{.count = 4, .active = 2, .router_width = 8};
#ifdef GYRE_COMPILE_PASS
using expert = gyre::gated_mlp<sizes>;
#else
using expert = gyre::expert_attention<sizes, rules>;
#endif
static_assert(gyre::expert_attention<sizes, rules, expert>::parameter_count > 0);
