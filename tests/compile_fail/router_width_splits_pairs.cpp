// expect: router: the split encoding turns two halves of pairs, so router_width must be a multiple of 4
#include <gyre/layers/expert_attention.hpp>

inline constexpr gyre::dims sizes{.width = 16, .heads = 2, .mlp = 8, .context = 4};
#ifdef GYRE_COMPILE_PASS
inline constexpr gyre::experts rules{.count = 4, .active = 2, .router_width = 6, .encoding = gyre::depth_encoding::forward};
#else
inline constexpr gyre::experts rules{.count = 4, .active = 2, .router_width = 6};
#endif
static_assert(gyre::expert_attention<sizes, rules>::parameter_count > 0);
