// expect: mixture: one to four branches
#include <gyre/compose/mixture.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>

inline constexpr gyre::dims sizes{.width = 16, .heads = 2, .mlp = 8, .context = 4};
inline constexpr gyre::experts rules{.count = 4, .active = 2, .router_width = 8};
#ifdef GYRE_COMPILE_PASS
template <class... More>
using layer = gyre::mixture<gyre::sequential, More...>;
#else
template <class... More>
using layer = gyre::mixture<gyre::sequential, More..., gyre::gated_mlp<sizes>, gyre::gated_mlp<sizes>>;
#endif
static_assert(
    layer<gyre::depth_attention<sizes>, gyre::sequence_attention<sizes>, gyre::expert_attention<sizes, rules>>::layers == 1);
