// Golden passes of mixtures: parallel_2, every expert chosen, norms elsewhere, depth attention with heads of its own.
// The memory of parity_mixtures.cpp, other arithmetic. [no_sanitizer]
#include "support/parity_mixtures.hpp"

using namespace gyre_test;

namespace {

using gyre::depth_encoding;

constexpr gyre::dims one_group = golden_dims(4, 1, 8);
constexpr gyre::depth_attention_options no_depth{.encoding = depth_encoding::none};
constexpr gyre::experts all_of_three{
    .count = 3, .active = 3, .shared_width = 3, .router_width = 8, .encoding = depth_encoding::none};
using parallel_2_model = golden_dreamer<golden_mixture<gyre::parallel_2, no_depth, all_of_three, one_group, golden_sizes>>;

constexpr gyre::depth_attention_options forward{.encoding = depth_encoding::forward, .base = 100};
constexpr gyre::experts two_forward{
    .count = 5, .active = 2, .shared_width = 3, .router_width = 6, .encoding = depth_encoding::forward, .base = 100};
using own_heads_model = golden_dreamer<golden_mixture<gyre::with_norms<gyre::sequential, gyre::pre_norm>, forward, two_forward,
                                                      golden_dims(4, 1, 4), golden_dims(2, 1, 6)>>;

}  // namespace

TEST_CASE("golden passes: parallel_2 mixture") { check_mixture_everywhere<parallel_2_model>("parallel_2"); }
TEST_CASE("golden passes: mixture whose depth attention has its own heads") {
  check_mixture_everywhere<own_heads_model>("own_heads");
}
