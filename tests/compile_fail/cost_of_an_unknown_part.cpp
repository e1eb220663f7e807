// expect: sizes_of: the closed form of the cost does not know a part of this model; see sizes_of, or ask plan_pass
#include <gyre/compose/residual.hpp>
#include <gyre/model/mixture_model.hpp>
#include <gyre/model/sizes_of.hpp>

inline constexpr gyre::dims sizes{.vocab = 5, .width = 16, .heads = 2, .mlp = 8, .context = 4};
#ifdef GYRE_COMPILE_PASS
using branch = gyre::sequence_attention<sizes>;
#else
using branch = gyre::residual<gyre::pre_norm, gyre::sequence_attention<sizes>>;  // a branch within a branch
#endif
using model = gyre::mixture_model<sizes, gyre::block<gyre::pre_norm, branch, gyre::gated_mlp<sizes>>>;
static_assert(gyre::cost<model>(3).parameters() > 0);
