// A layer whose result is normed: the state_norm of a mixture.
#pragma once

#include <gyre/core/concepts.hpp>
#include <gyre/layers/rms_norm.hpp>

GYRE_BEGIN

namespace detail {

/// The new state, normed.
template <layer L, dims D>
struct normed_state {
  static constexpr int width = L::inputs, inputs = width, outputs = width;
  using norm = gyre::rms_norm<D, gain::learned, width>;
  static constexpr index norm_at = L::parameter_count, parameter_count = norm_at + norm::parameter_count;
  static constexpr index cache_width = gyre::cache_width<L>;
  template <class P>
  struct tape {
    tape_t<L, P> inner;
    tape_t<norm, P> after;
  };
  template <class P>
  struct carry {
    carry_t<L, P> inner;
  };
  template <class V>
  static constexpr void visit(V& v, const path& at) {
    L::visit(v, at);
    norm::visit(v, path{&at, "state_norm"});
  }
  template <class B, class P>
  static void open_carry(context<B, P>& c, arena& memory, index tokens, int steps, carry<P>& k) {
    gyre::open_carry<L>(c, memory, tokens, steps, k.inner);
  }
  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, width> x, rows<activation_t<P>, width> y,
                      tape<P>& t, carry<P>& k) {
    auto state = c.tape.template take_rows<activation_t<P>, width>(x.count);
    forward_through<L>(c, w, x, state, t.inner, k.inner);
    norm::forward(c, w + norm_at, rows<const activation_t<P>, width>(state), y, t.after);
  }
  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                       rows<const activation_t<P>, width> dy, rows<activation_t<P>, width> dx, const carry<P>& k,
                       carry<P>& dk) {
    using T = activation_t<P>;
    frame f(c.scratch);
    auto d = c.scratch.template take_rows<T, width>(dy.count);
    c.device.fill(d.view(), T(0));
    norm::backward(c, w + norm_at, dw + norm_at, t.after, dy, d);
    backward_through<L>(c, w, dw, t.inner, rows<const T, width>(d), dx, k.inner, dk.inner);
  }
};

}  // namespace detail

GYRE_END
