// Golden passes of mixtures: mixed projections in both attentions, and a norm of the state.
// The memory of parity_mixtures_maps.cpp, other arithmetic. [no_sanitizer]
#include "support/parity_mixtures.hpp"

using namespace gyre_test;

namespace {

using gyre::depth_encoding;

constexpr gyre::routing two_of_three{.count = 3, .active = 2, .router_width = 8},
    two_of_three_fast{.count = 3, .active = 2, .router_width = 8, .base = 100};
constexpr gyre::experts two_of_five{.count = 5, .active = 2, .shared_width = 3, .router_width = 8},
    two_of_five_wide{.count = 5, .active = 2, .shared_width = 3, .router_width = 12, .base = 100};

constexpr gyre::depth_attention_options depth_two{.projections = two_of_three_fast, .encoding = depth_encoding::none};
using mixed_both_model =
    golden_dreamer<golden_mixture<gyre::parallel_2, depth_two, two_of_five, golden_sizes, golden_sizes, two_of_three>>;

constexpr gyre::depth_attention_options earlier_only{.base = 100, .exclusive = true};
using state_norm_model =
    golden_dreamer<golden_mixture<gyre::with_norms<gyre::parallel_2, gyre::branch_sandwich, gyre::state_norm::yes>,
                                  earlier_only, two_of_five_wide, golden_sizes, golden_dims(2, 2, 8)>>;

}  // namespace

TEST_CASE("golden passes: mixed projections in both attentions") { check_mixture_everywhere<mixed_both_model>("mixed_both"); }
TEST_CASE("golden passes: mixture that norms its state") { check_mixture_everywhere<state_norm_model>("state_norm"); }
