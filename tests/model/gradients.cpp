// Gradients of the Huginn model (2, 4, 2) by complex step. Every parameter takes a minute and has the memory of
// gradients_of_variants.cpp. [no_sanitizer]
#include "support/gradients.hpp"

#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>

namespace {

template <gyre::dims D>
struct Block : gyre::sandwich_block<gyre::sequence_attention<D>, gyre::gated_mlp<D>> {};
template <gyre::dims D>
struct Huginn : gyre::model<D, gyre::prelude<gyre::stack<2, Block<D>>>, gyre::recurrent<gyre::stack<4, Block<D>>>,
                            gyre::coda<gyre::stack<2, Block<D>>>> {};

constexpr gyre::dims narrow{.vocab = 11, .width = 8, .heads = 2, .mlp = 10, .context = 6};
constexpr gyre::dims wider{.vocab = 17, .width = 24, .heads = 3, .mlp = 40, .context = 9};

}  // namespace

TEST_CASE("every parameter's gradient agrees with the complex step at width 8", "[early]") {
  gyre_test::gradient_check<Huginn<narrow>> check({4, 3});
  for (int r : {1, 3, 4}) check.check_every_parameter(r);
}

TEST_CASE("gradients along eight random directions agree with the complex step at width 24") {
  gyre_test::gradient_check<Huginn<wider>> check({9, 1, 6});
  for (int r : {1, 3, 4}) check.check_directions(r, 8);
}
