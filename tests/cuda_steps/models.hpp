// Models of awkward sizes whose training steps run on the interpreter, and recordings of them: a unit for each side, for the
// compiler's sake.
#pragma once

#include <type_traits>

#include <gyre/compose/mixture.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/mixture_model.hpp>
#include <gyre/model/model.hpp>
#include <gyre/parity/selection.hpp>
#include <gyre/parity/step.hpp>
#include <gyre/simt.hpp>
#include <gyre/train/adamw.hpp>
#include <gyre/train/huginn_adam.hpp>

namespace gyre_test {

/// Width 40, five heads of 8; `KeyHeads` of them have keys and values. Nothing is a multiple of anything.
template <int KeyHeads>
inline constexpr gyre::dims odd{
    .vocab = 257, .width = 40, .heads = 5, .kv_heads = KeyHeads, .mlp = 56, .context = 129, .mean_steps = 3};
template <int KeyHeads>
struct odd_block : gyre::sandwich_block<gyre::sequence_attention<odd<KeyHeads>>, gyre::gated_mlp<odd<KeyHeads>>> {};

/// Prelude, core and coda of one block each.
template <int KeyHeads>
struct huginn_like
    : gyre::model<odd<KeyHeads>, gyre::prelude<odd_block<KeyHeads>>,
                  gyre::recurrent<gyre::stack<1, odd_block<KeyHeads>>, gyre::inject::concat>, gyre::coda<odd_block<KeyHeads>>> {
};

/// Two heads of 64, for which attention in bf16 has kernels for tensor cores.
inline constexpr gyre::dims even{.vocab = 257, .width = 128, .heads = 2, .mlp = 56, .context = 129, .mean_steps = 3};
struct even_block : gyre::sandwich_block<gyre::sequence_attention<even>, gyre::gated_mlp<even>> {};
struct huginn_of_64 : gyre::model<even, gyre::prelude<even_block>,
                                  gyre::recurrent<gyre::stack<1, even_block>, gyre::inject::concat>, gyre::coda<even_block>> {};

/// Depth attention, sequence attention with tied mixed projections, and eight experts of which two are active.
struct dreamer_like
    : gyre::mixture_model<
          odd<1>,
          gyre::mixture<gyre::sequential, gyre::depth_attention<odd<1>, gyre::depth_attention_options{}>,
                        gyre::sequence_attention<
                            odd<1>, gyre::attention_options{.projections = {.count = 3, .active = 2, .router_width = 8}}>,
                        gyre::expert_attention<odd<1>, gyre::experts{.count = 8, .active = 2, .router_width = 8}>>> {};

using gyre::parity::recording;
using input = gyre::parity::step_input<float>;

/// adamw divides a gradient by its own size, and where that is below its error bounds say nothing after a step or two; updates of
/// huginn_adam are bounded. Of these models a Huginn in fp32 alone has gradients without such places.
template <class Model, class P>
auto rule_of() {
  if constexpr (std::is_same_v<P, gyre::fp32> && !std::is_same_v<Model, dreamer_like>)
    return gyre::adamw{};
  else
    return gyre::huginn_adam{};
}

struct expected_steps {
  recording calls;
  gyre::parity::selections choices;
};
template <class Model, class P>
expected_steps steps_in_bounded_numbers(const input&);

struct steps_of_backend {
  recording calls;
  gyre::parity::replay_counts replayed;
};
template <class Model, class P>
steps_of_backend steps_on_cpu(const input&, const gyre::parity::selections&);
/// On the interpreter, the threads of every launch in that order.
template <class Model, class P>
steps_of_backend steps_on_cuda(const input&, const gyre::parity::selections&, gyre::simt::thread_order);

/// Sequences of 1, 7 and 129 tokens.
template <class Model, class P>
input make_input(gyre::depth_draw draw, int steps) {
  constexpr gyre::index lengths[] = {1, 7, 129};
  input from = gyre::parity::make_step_input<Model, float>(lengths, draw, gyre::seed{3}, steps);
  for (float& x : from.parameters) x = static_cast<float>(gyre::parameter_t<P>(x));
  return from;
}

}  // namespace gyre_test
