// Golden passes of mixtures with mixed projections: one choice a token, depth and attention.
// [own_unit]
#include "support/parity_mixtures.hpp"

using namespace gyre_test;

namespace {

using gyre::depth_encoding;

constexpr gyre::routing one_of_three{.count = 3, .active = 1, .router_width = 8},
    two_of_three{.count = 3, .active = 2, .router_width = 8},
    one_anywhere{.count = 3, .active = 1, .router_width = 8, .encoding = depth_encoding::none},
    two_forward{.count = 3, .active = 2, .router_width = 8, .encoding = depth_encoding::forward};

constexpr gyre::depth_attention_options depth_one{.projections = one_of_three};
constexpr gyre::experts single{.shared_width = 3};
using mixed_two_model = golden_dreamer<golden_mixture<gyre::with_norms<gyre::sequential, gyre::pre_norm, gyre::state_norm::yes>,
                                                      depth_one, single, golden_sizes, golden_sizes, two_of_three>>;

constexpr gyre::depth_attention_options depth_two{.projections = two_forward, .exclusive = true};
constexpr gyre::experts one_of_five{.count = 5, .active = 1, .router_width = 8};
struct mixed_one_layer
    : gyre::mixture<gyre::with_norms<gyre::parallel_3, gyre::pre_norm>, gyre::depth_attention<golden_sizes, depth_two>,
                    gyre::sequence_attention<golden_sizes, golden_attention(one_anywhere)>,
                    gyre::expert_attention<golden_sizes, one_of_five, gyre::gated_mlp<golden_sizes>, gyre::no_shared_expert>> {
};
using mixed_one_model = golden_dreamer<mixed_one_layer>;

}  // namespace

TEST_CASE("golden passes: two of three projections along the sequence, one of three along depth") {
  check_mixture_everywhere<mixed_two_model>("mixed_two");
}
TEST_CASE("golden passes: one of three projections along the sequence, two of three along depth") {
  check_mixture_everywhere<mixed_one_model>("mixed_one");
}
