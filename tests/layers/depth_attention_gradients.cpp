// Gradients through the memory that the steps of a recurrence share. [no_sanitizer]
#include <gyre/layers/depth_attention.hpp>

#include <catch2/catch.hpp>

#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>

#include "support/gradients.hpp"

namespace {

using gyre::depth_attention, gyre::depth_attention_options, gyre::depth_encoding, gyre::gain;

constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 2, .kv_heads = 1, .head_width = 4, .mlp = 6, .context = 6};

constexpr gyre::attention_options attention{.query_key_bias = false, .query_key_norm = true};

// One layer of the recurrence: depth attention, then sequence attention, then an MLP, each a branch of its own.
template <depth_attention_options O, class Placement = gyre::branch_sandwich>
struct Layer : gyre::chain<gyre::residual<Placement, depth_attention<sizes, O>>,
                           gyre::residual<Placement, gyre::sequence_attention<sizes, attention>>,
                           gyre::residual<Placement, gyre::gated_mlp<sizes>>> {
  static constexpr int layers = 1;
};
template <depth_attention_options O>
struct Dreamer : gyre::model<sizes, gyre::recurrent<Layer<O>, gyre::inject::none, gyre::initial_state::embedding>> {};
template <depth_attention_options O>
struct HuginnWithDepth : gyre::model<sizes, gyre::prelude<Layer<O>>, gyre::recurrent<gyre::stack<2, Layer<O>>>> {};

constexpr depth_attention_options split{}, forward{.encoding = depth_encoding::forward, .exclusive = true},
    bare{.encoding = depth_encoding::none, .query_key_norm = false}, without_gain{.base = 100, .norm_gain = gain::none};

}  // namespace

TEMPLATE_TEST_CASE_SIG("gradients through the memory of all depths agree with the complex step", "",
                       ((depth_attention_options O), O), split, forward, bare, without_gain) {
  gyre_test::gradient_check<Dreamer<O>> dreamer({4, 1, 2});
  // Over one slot a softmax is 1, and q and k have no gradient.
  for (const int steps : {O.exclusive ? 3 : 2, 6}) dreamer.check_every_parameter(steps);
}

TEST_CASE("depth attention works in a prelude, with one step, and in a recurrence with injection") {
  gyre_test::gradient_check<HuginnWithDepth<split>> check({3, 2});
  check.check_directions(3, 4);
}

TEST_CASE("at one step inclusive depth attention has gradients too") {
  // q and k have none: a softmax over one slot is 1.
  gyre_test::gradient_check<Dreamer<split>> check({4, 1, 2});
  check.check_directions(1, 4);
}
