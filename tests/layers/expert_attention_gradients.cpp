// Gradients through routing, with the selection as it fell: experts of every kind and mixed projections. [no_sanitizer]
#include <gyre/layers/expert_attention.hpp>

#include <catch2/catch.hpp>

#include <gyre/compose/mixture.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>

#include "support/gradients.hpp"

namespace {

using gyre::experts, gyre::depth_encoding;

constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 2, .kv_heads = 1, .head_width = 4, .mlp = 6, .context = 6};
constexpr gyre::attention_options plain{.query_key_bias = false, .query_key_norm = true};
constexpr gyre::routing two_of_three_maps{.count = 3, .active = 2, .router_width = 4},
    one_of_two_maps{.count = 2, .router_width = 4};

constexpr experts two_of_three{.count = 3, .active = 2, .width = 5, .shared_width = 3, .router_width = 4};
constexpr experts one_of_three{.count = 3, .active = 1, .router_width = 4, .encoding = depth_encoding::none};
constexpr experts all{.count = 2, .active = 2, .router_width = 4, .bias_rows = 2, .encoding = depth_encoding::forward};
constexpr experts with_losses{.count = 3, .active = 2, .router_width = 4, .balance_weight = 0.7, .z_weight = 0.3};
constexpr experts single{.count = 1, .active = 1};

template <class Layers>
struct Dreamer : gyre::model<sizes, gyre::recurrent<Layers, gyre::inject::none, gyre::initial_state::embedding>,
                             gyre::initialised<gyre::mixture_initialisation<>>> {};
template <class Form, class Experts>
struct Layer : gyre::mixture<Form, gyre::depth_attention<sizes>, gyre::sequence_attention<sizes, plain>, Experts> {};

template <experts O>
using with_experts = Layer<gyre::sequential, gyre::expert_attention<sizes, O>>;
using without_shared =
    Layer<gyre::sequential, gyre::expert_attention<sizes, two_of_three, gyre::gated_mlp<sizes>, gyre::no_shared_expert>>;
// A layer that cannot be run for all experts at once.
struct Normed : gyre::residual<gyre::pre_norm, gyre::gated_mlp<sizes>> {};
using one_by_one = Layer<gyre::sequential, gyre::expert_attention<sizes, two_of_three, Normed>>;

template <gyre::routing Sequence, gyre::routing Depth>
struct Mixed
    : gyre::mixture<gyre::sequential, gyre::depth_attention<sizes, gyre::depth_attention_options{.projections = Depth}>,
                    gyre::sequence_attention<sizes, gyre::attention_options{.projections = Sequence, .query_key_norm = true}>> {
};

}  // namespace

TEMPLATE_TEST_CASE("gradients of experts of every kind agree with the complex step", "", with_experts<one_of_three>,
                   with_experts<all>, with_experts<single>, with_experts<with_losses>, without_shared, one_by_one) {
  gyre_test::gradient_check<Dreamer<TestType>> check({5, 1, 4});
  check.check_every_parameter(3);
}

TEST_CASE("gradients of mixed projections agree with the complex step") {
  gyre_test::gradient_check<Dreamer<Mixed<two_of_three_maps, one_of_two_maps>>>({5, 1, 4}).check_every_parameter(2);
  gyre_test::gradient_check<Dreamer<Mixed<one_of_two_maps, two_of_three_maps>>>({5, 1, 4}).check_every_parameter(3);
}
