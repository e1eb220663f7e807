// expect: router: a token cannot use more experts than there are (active <= count)
#include <gyre/layers/expert_attention.hpp>

inline constexpr gyre::dims sizes{.width = 16, .heads = 2, .mlp = 8, .context = 4};
#ifdef GYRE_COMPILE_PASS
inline constexpr gyre::experts rules{.count = 4, .active = 4};
#else
inline constexpr gyre::experts rules{.count = 4, .active = 5};
#endif
static_assert(gyre::expert_attention<sizes, rules>::parameter_count > 0);
