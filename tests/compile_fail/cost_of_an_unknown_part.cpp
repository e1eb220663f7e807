// expect: sizes_of: the closed form of the cost does not know a part of this model; see sizes_of, or ask plan_pass
#include <gyre/model/mixture_model.hpp>
#include <gyre/model/sizes_of.hpp>

inline constexpr gyre::dims sizes{.vocab = 5, .width = 16, .heads = 2, .mlp = 8, .context = 4};
#ifdef GYRE_COMPILE_PASS
inline constexpr gyre::dims other = sizes;
#else
inline constexpr gyre::dims other{.vocab = 5, .width = 16, .heads = 4, .mlp = 8, .context = 4};  // narrower heads
#endif
using model =
    gyre::mixture_model<sizes, gyre::mixture<gyre::sequential, gyre::depth_attention<other>,
                                             gyre::sequence_attention<sizes, gyre::mixture_attention>, gyre::gated_mlp<sizes>>>;
static_assert(gyre::cost<model>(3).parameters() > 0);
