// Golden passes of mixtures: a stack of separate layers in one step, and mixtures in every section of a model.
// [own_unit]
#include "support/parity_mixtures.hpp"

using namespace gyre_test;

namespace {

constexpr gyre::experts two_of_five{.count = 5, .active = 2, .shared_width = 3, .router_width = 8},
    two_of_five_narrow{.count = 5, .active = 2, .width = 4, .shared_width = 3, .router_width = 8};
template <gyre::dims Heads, gyre::experts Experts>
using layer = golden_mixture<gyre::sequential, gyre::depth_attention_options{}, Experts, Heads>;

using layered_model = golden_dreamer<gyre::stack<3, layer<golden_dims(2, 1, 8), two_of_five>>>;

using huginn_layer = layer<golden_dims(2, 1, 4), two_of_five_narrow>;
struct huginn_model : gyre::model<golden_sizes, gyre::prelude<huginn_layer>, gyre::recurrent<gyre::stack<2, huginn_layer>>,
                                  gyre::coda<huginn_layer>> {};

}  // namespace

TEST_CASE("golden passes: separate mixtures in one step") { check_mixture_everywhere<layered_model>("layered"); }
TEST_CASE("golden passes: mixtures in prelude, core and coda") { check_mixture_everywhere<huginn_model>("huginn"); }
