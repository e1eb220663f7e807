// expect: router: there must be at least one expert
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>

inline constexpr gyre::dims sizes{.width = 16, .heads = 2, .mlp = 8, .context = 4};
inline constexpr gyre::experts rules{.count = 4, .active = 2, .router_width = 8};
#ifdef GYRE_COMPILE_PASS
inline constexpr gyre::experts none{.count = 1, .active = 1};
#else
inline constexpr gyre::experts none{.count = 0, .active = 1};
#endif
static_assert(gyre::expert_attention<sizes, none>::parameter_count > 0);
