// expect: sizes_of: the closed form of the cost knows no q/k bias (attention_options.query_key_bias = false)
#include <gyre/model/mixture_model.hpp>
#include <gyre/model/sizes_of.hpp>

inline constexpr gyre::dims sizes{.vocab = 5, .width = 16, .heads = 2, .mlp = 8, .context = 4};
#ifdef GYRE_COMPILE_PASS
inline constexpr gyre::attention_options rules = gyre::mixture_attention;
#else
inline constexpr gyre::attention_options rules{};
#endif
using model =
    gyre::mixture_model<sizes, gyre::mixture<gyre::sequential, gyre::sequence_attention<sizes, rules>, gyre::gated_mlp<sizes>>>;
static_assert(gyre::cost<model>(3).parameters() > 0);
