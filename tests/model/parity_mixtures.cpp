// Golden passes of mixtures, their forms: the order of branches and norms, depth attention, experts.
#include "support/parity_mixtures.hpp"

using namespace gyre_test;

namespace {

using gyre::depth_encoding;

constexpr gyre::experts two_of_five{
    .count = 5, .active = 2, .shared_width = 3, .router_width = 8, .balance_weight = 0.75, .z_weight = 0.25};
using sequential_model = golden_dreamer<golden_mixture<gyre::sequential, gyre::depth_attention_options{}, two_of_five>>;

constexpr gyre::depth_attention_options earlier_only{.encoding = depth_encoding::forward, .exclusive = true};
constexpr gyre::experts one_of_five{
    .count = 5, .active = 1, .shared_width = 3, .router_width = 8, .encoding = depth_encoding::forward};
using parallel_3_model = golden_dreamer<golden_mixture<gyre::parallel_3, earlier_only, one_of_five>>;

}  // namespace

TEST_CASE("golden passes: sequential mixture") { check_mixture_everywhere<sequential_model>("sequential"); }
TEST_CASE("golden passes: parallel_3 mixture") { check_mixture_everywhere<parallel_3_model>("parallel_3"); }
