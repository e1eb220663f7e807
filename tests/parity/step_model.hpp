// A small recurrent model, and recordings of its training steps: one unit compiles each side, for a pass in one scalar takes seconds.
#pragma once

#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/model.hpp>
#include <gyre/parity/step.hpp>
#include <gyre/train/adamw.hpp>

namespace gyre_test {

inline constexpr gyre::dims small{
    .vocab = 257, .width = 40, .heads = 5, .kv_heads = 1, .mlp = 56, .context = 129, .mean_steps = 3};
struct Block : gyre::sandwich_block<gyre::sequence_attention<small>, gyre::gated_mlp<small>> {};
struct Small : gyre::model<small, gyre::prelude<Block>, gyre::recurrent<gyre::stack<1, Block>, gyre::inject::concat>,
                           gyre::coda<Block>> {};

inline constexpr gyre::depth_draw three_steps{1, 2};  // one without gradients

using gyre::parity::recording, gyre::parity::step_input;
template <class T>
recording record_on_reference(const step_input<T>& input);
template <class T>
recording record_on_cpu(const step_input<T>& input);
template <class T>
recording record_in_bounded_numbers(const step_input<T>& input);
recording record_mixed_on_reference(const step_input<float>& input);
recording record_mixed_on_cpu(const step_input<float>& input);
recording record_mixed_in_bounded_numbers(const step_input<float>& input);

}  // namespace gyre_test
