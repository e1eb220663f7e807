// expect: sequence_attention: a mixture of projections must be sparse (projections.active < projections.count), or one of one
#include <gyre/layers/sequence_attention.hpp>

inline constexpr gyre::dims sizes{.width = 16, .heads = 2, .mlp = 8, .context = 4};
#ifdef GYRE_COMPILE_PASS
inline constexpr gyre::attention_options rules{.projections = {.count = 3, .active = 2}};
#else
inline constexpr gyre::attention_options rules{.projections = {.count = 3, .active = 3}};
#endif
static_assert(gyre::sequence_attention<sizes, rules>::parameter_count > 0);
