// A small mixture with experts, and recordings of its training steps: one unit compiles each side.
#pragma once

#include <gyre/compose/mixture.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/mixture_model.hpp>
#include <gyre/parity/step.hpp>
#include <gyre/train/adamw.hpp>

namespace gyre_test {

inline constexpr gyre::dims few{.vocab = 61, .width = 20, .heads = 5, .kv_heads = 1, .mlp = 28, .context = 33};
inline constexpr gyre::routing maps{.count = 3, .active = 2, .router_width = 8};
struct Dreamer
    : gyre::mixture_model<
          few, gyre::mixture<gyre::sequential, gyre::depth_attention<few, gyre::depth_attention_options{}>,
                             gyre::sequence_attention<few, gyre::attention_options{.projections = maps}>,
                             gyre::expert_attention<few, gyre::experts{.count = 8, .active = 2, .router_width = 8}>>> {};

using gyre::parity::recording, gyre::parity::step_input;
recording mixture_on_reference(const step_input<float>& input);
recording mixture_on_cpu(const step_input<float>& input);
recording mixture_in_bounded_numbers(const step_input<float>& input);

}  // namespace gyre_test
