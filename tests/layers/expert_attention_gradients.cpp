// Gradients through routing, with the selection as it fell: experts of every kind, mixed projections, and mixtures in every place
// of a model.
#include <gyre/layers/expert_attention.hpp>

#include <catch2/catch.hpp>

#include <gyre/compose/checkpoint.hpp>
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

using normed = gyre::with_norms<gyre::sequential, gyre::pre_norm, gyre::state_norm::yes>;

template <gyre::routing Sequence, gyre::routing Depth>
struct Mixed
    : gyre::mixture<gyre::sequential, gyre::depth_attention<sizes, gyre::depth_attention_options{.projections = Depth}>,
                    gyre::sequence_attention<sizes, gyre::attention_options{.projections = Sequence, .query_key_norm = true}>> {
};

struct Huginn
    : gyre::model<sizes, gyre::prelude<with_experts<two_of_three>>, gyre::recurrent<gyre::stack<2, with_experts<two_of_three>>>,
                  gyre::coda<with_experts<one_of_three>>> {};
struct Checkpointed
    : gyre::model<
          sizes,
          gyre::recurrent<gyre::checkpoint<with_experts<two_of_three>>, gyre::inject::none, gyre::initial_state::embedding>,
          gyre::initialised<gyre::mixture_initialisation<>>> {};

}  // namespace

TEMPLATE_TEST_CASE("gradients of mixtures of every form agree with the complex step", "", gyre::sequential, gyre::parallel_3,
                   gyre::parallel_2, normed) {
  gyre_test::gradient_check<Dreamer<Layer<TestType, gyre::expert_attention<sizes, two_of_three>>>> check({5, 1, 4});
  for (const int steps : {2, 6}) check.check_every_parameter(steps);
  check.check_directions(1, 4);
}

TEMPLATE_TEST_CASE("gradients of experts of every kind agree with the complex step", "", with_experts<one_of_three>,
                   with_experts<all>, with_experts<single>, with_experts<with_losses>, without_shared, one_by_one) {
  gyre_test::gradient_check<Dreamer<TestType>> check({5, 1, 4});
  check.check_every_parameter(3);
}

TEST_CASE("gradients of mixed projections agree with the complex step") {
  gyre_test::gradient_check<Dreamer<Mixed<two_of_three_maps, one_of_two_maps>>>({5, 1, 4}).check_every_parameter(2);
  gyre_test::gradient_check<Dreamer<Mixed<one_of_two_maps, two_of_three_maps>>>({5, 1, 4}).check_every_parameter(3);
}

TEST_CASE("mixtures work in a prelude, a coda and a recurrence with injection, with steps without gradient before") {
  gyre_test::gradient_check<Huginn> check({5, 2});
  check.check_directions(3, 4);
}

TEST_CASE("a checkpointed mixture has the gradient of the mixture, bit for bit") {
  gyre_test::gradient_check<Checkpointed> checkpointed({5, 1, 4});
  gyre_test::gradient_check<Dreamer<with_experts<two_of_three>>> stored({5, 1, 4});
  CHECK(checkpointed.backward({1, 3}) == stored.backward({1, 3}));
}
