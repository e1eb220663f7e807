// expect: depth_attention: the split encoding turns two halves of pairs, so the width of a head must be a multiple of 4
#include <gyre/layers/depth_attention.hpp>

#ifdef GYRE_COMPILE_PASS
inline constexpr gyre::dims sizes{.width = 16, .heads = 2, .head_width = 8};
#else
inline constexpr gyre::dims sizes{.width = 16, .heads = 2, .head_width = 6};
#endif
static_assert(gyre::depth_attention<sizes>::parameter_count > 0);
