// Gradients through mixtures of every form, in every place of a model. [no_sanitizer]
#include <gyre/compose/mixture.hpp>

#include <catch2/catch.hpp>

#include <gyre/compose/checkpoint.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>

#include "support/gradients.hpp"

namespace {

using gyre::experts, gyre::depth_encoding;

constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 2, .kv_heads = 1, .head_width = 4, .mlp = 6, .context = 6};
constexpr gyre::attention_options plain{.query_key_bias = false, .query_key_norm = true};

constexpr experts two_of_three{.count = 3, .active = 2, .width = 5, .shared_width = 3, .router_width = 4};
constexpr experts one_of_three{.count = 3, .active = 1, .router_width = 4, .encoding = depth_encoding::none};

template <class Layers>
struct Dreamer : gyre::model<sizes, gyre::recurrent<Layers, gyre::inject::none, gyre::initial_state::embedding>,
                             gyre::initialised<gyre::mixture_initialisation<>>> {};
template <class Form, experts O>
struct Layer : gyre::mixture<Form, gyre::depth_attention<sizes>, gyre::sequence_attention<sizes, plain>,
                             gyre::expert_attention<sizes, O>> {};
template <experts O>
using with_experts = Layer<gyre::sequential, O>;

using normed = gyre::with_norms<gyre::sequential, gyre::pre_norm, gyre::state_norm::yes>;

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
  gyre_test::gradient_check<Dreamer<Layer<TestType, two_of_three>>> check({5, 1, 4});
  for (const int steps : {2, 6}) check.check_every_parameter(steps);
  check.check_directions(1, 4);
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
