// The recurrence in depth: one body, the same weights at every step, the input injected each time.
#pragma once

#include <gyre/compose/stack.hpp>
#include <gyre/core/concepts.hpp>
#include <gyre/policy/depth.hpp>
#include <gyre/policy/initial_state.hpp>
#include <gyre/policy/injection.hpp>

GYRE_BEGIN

/// Where the loop's norm stands. The weight is the model's final norm.
namespace loop_norm {
/// Once after the whole loop (Huginn's n_c).
struct after {
  static constexpr bool follows = true;
};
/// Nowhere: only the coda's output is normalised (retrofitted models).
struct none {
  static constexpr bool follows = false;
};
}  // namespace loop_norm

namespace detail {
template <class L>
struct as_sequence {
  using type = stack<1, L>;
};
template <class L>
requires L::is_sequence struct as_sequence<L> {
  using type = L;
};
}  // namespace detail

/// s_i = Body(inject(s_{i-1}, e)), i = 1..r (recurrent_depth, section 1), with backpropagation truncated to the last steps.
///
/// Steps without gradient run inside released arena frames, so tape memory does not grow with r. A body may declare a carry,
/// memory shared by the steps; it lives outside those frames, for slots that steps without gradient wrote are read, as constants,
/// by the steps with gradient.
template <layer Layers, class Injection = inject::concat, class InitialState = initial_state::like_init,
          class LoopNorm = loop_norm::after>
struct recurrent {
  using body = typename detail::as_sequence<Layers>::type;
  static_assert(body::inputs == body::outputs, "recurrent: the body must keep the width of the state");
  static_assert(
      Injection::uses_input || InitialState::is_embedding,
      "recurrent: without injection the state must start as the embedding (initial_state::embedding), or the model would "
      "never see its input");
  static constexpr int width = body::inputs;
  static constexpr int layers = detail::layers_in<body>();
  static constexpr bool norm_follows = LoopNorm::follows;
  static constexpr bool uses_input = Injection::uses_input;
  using injection = typename Injection::template bind<width>;
  using state_policy = InitialState;
  static constexpr index parameter_count = injection::parameter_count + body::parameter_count;
  static constexpr index cache_width = gyre::cache_width<body>;  // of one step

  template <class P>
  struct step_tape {
    typename injection::template tape<P> injected;
    tape_t<body, P> layers;
  };
  template <class P>
  struct tape {
    depth_draw draw;
    rows<const activation_t<P>, width> e, prepared;
    rows<const activation_t<P>, width> previous, last;  // s_{r-1} and s_r
    step_tape<P>* steps = nullptr;                      // (draw.gradient_steps)
    carry_t<body, P> carry;
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    injection::visit(v, at);
    body::visit(v, path{&at, "core_block"});
  }

  /// One step. `out` receives the new state. The caller sets c.step.
  template <class B, class P>
  static void step(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, width> s,
                   rows<const activation_t<P>, width> prepared, rows<activation_t<P>, width> out, step_tape<P>& t,
                   carry_t<body, P>& k) {
    const auto z = injection::forward(c, w, s, prepared, t.injected);
    forward_through<body>(c, w + injection::parameter_count, z, out, t.layers, k);
  }

  /// Runs all steps from s0. Without c.keep no step keeps a tape. Returns s_r.
  template <class B, class P>
  static rows<const activation_t<P>, width> forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, width> e,
                                                    rows<const activation_t<P>, width> s0, depth_draw draw, tape<P>& t) {
    using T = activation_t<P>;
    require(draw.free_steps >= 0 && draw.gradient_steps >= 0, "recurrent: ", draw.free_steps, " steps without and ",
            draw.gradient_steps, " with gradient; neither is negative");
    const int total = draw.free_steps + draw.gradient_steps;
    require(total >= 1, "recurrent: ", total, " steps; at least 1 is needed");
    if (!c.keep) draw = {total, 0};
    t.draw = draw;
    t.e = e;
    t.prepared = injection::prepare(c, w, e);
    c.steps = total;
    open_carry<body>(c, c.tape, e.count, total, t.carry);
    rows<const T, width> s = s0;
    rows<T, width> turns[2];
    for (int i = 0; i < (std::min)(draw.free_steps, 2); ++i) turns[i] = c.tape.template take_rows<T, width>(e.count);
    const bool keep = c.keep;
    c.keep = false;
    for (int i = 0; i < draw.free_steps; ++i) {
      frame memory(c.tape);
      frame records(c.records);
      step_tape<P> passing{};
      c.step = i;
      step(c, w, s, t.prepared, turns[i % 2], passing, t.carry);
      t.previous = s;
      s = turns[i % 2];
    }
    c.keep = keep;
    t.steps = c.records.template take<step_tape<P>>(draw.gradient_steps);
    for (int i = 0; i < draw.gradient_steps; ++i) {
      auto out = c.tape.template take_rows<T, width>(e.count);
      c.step = draw.free_steps + i;
      step(c, w, s, t.prepared, out, t.steps[i], t.carry);
      t.previous = s;
      s = out;
    }
    c.step = -1;
    t.last = s;
    return s;
  }

  /// From the gradient of s_r to those of the weights and of e (which accumulates). Steps without gradient are constants.
  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                       rows<const activation_t<P>, width> dy, rows<activation_t<P>, width> de) {
    using T = activation_t<P>;
    frame f(c.scratch);
    auto ds = c.scratch.template take_rows<T, width>(dy.count), dz = c.scratch.template take_rows<T, width>(dy.count);
    rows<T, width> dz_sum;
    if constexpr (Injection::uses_input) {
      dz_sum = c.scratch.template take_rows<T, width>(dy.count);
      c.device.fill(dz_sum.view(), T(0));
    }
    carry_t<body, P> carry_gradient{};
    c.steps = t.draw.free_steps + t.draw.gradient_steps;
    open_carry<body>(c, c.scratch, dy.count, c.steps, carry_gradient);
    c.device.copy(dy.view(), ds.view());
    for (int i = t.draw.gradient_steps - 1; i >= 0; --i) {
      c.step = t.draw.free_steps + i;
      backward_through<body>(c, w + injection::parameter_count, dw + injection::parameter_count, t.steps[i].layers,
                             rows<const T, width>(ds), dz, t.carry, carry_gradient, false);
      injection::backward(c, w, dw, t.steps[i].injected, rows<const T, width>(dz), ds);
      if constexpr (Injection::uses_input) c.device.add(matrix_view<const T>(dz.view()), dz_sum.view());
    }
    c.step = -1;
    injection::backward_prepared(c, w, dw, t.e, rows<const T, width>(dz_sum), de);
    if constexpr (InitialState::is_embedding)
      if (t.draw.free_steps == 0) c.device.add(matrix_view<const T>(ds.view()), de.view());
  }
};

GYRE_END
