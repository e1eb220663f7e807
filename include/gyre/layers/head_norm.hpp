// RMSNorm of every head's queries or keys, before their encoding.
#pragma once

#include <gyre/layers/rms_norm.hpp>

GYRE_BEGIN

/// The heads of x(tokens, heads * width), each normed over its own features, with one weight (width) for all heads or none.
template <int Heads, int Width, gain Gain>
struct head_norm {
  static constexpr index parameter_count = Gain == gain::learned ? Width : 0;

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    if constexpr (Gain == gain::learned) v.tensor(path{&at, "weight"}, {Width}, role::gain);
  }

  /// Scalars that `rstd` needs.
  static constexpr index statistics(index tokens) { return Heads * tokens; }

  template <class B, class P, class T, class S>
  static void forward(context<B, P>& c, weights<B, P> w, double eps, matrix_view<const T> x, matrix_view<T> y, S* rstd) {
    for (int h = 0; h < Heads; ++h)
      c.device.rms_norm(x.columns(h * Width, Width), weight(w.data), eps, y.columns(h * Width, Width), rstd + h * x.rows);
  }
  /// Assigns dx; dw accumulates.
  template <class B, class P, class T, class S, class G>
  static void backward(context<B, P>& c, weights<B, P> w, G* dw, matrix_view<const T> x, const S* rstd, matrix_view<const T> dy,
                       matrix_view<T> dx) {
    c.device.fill(dx, T(0));
    frame f(c.scratch);
    G* const workspace = c.scratch.template take<G>(parameter_count > 0 ? B::rms_norm_backward_workspace(x.rows, Width) : 0);
    for (int h = 0; h < Heads; ++h)
      c.device.rms_norm_backward(x.columns(h * Width, Width), weight(w.data), rstd + h * x.rows, dy.columns(h * Width, Width),
                                 dx.columns(h * Width, Width), weight(dw), workspace);
  }

 private:
  template <class W>
  static W* weight(W* data) {
    return parameter_count > 0 ? data : nullptr;
  }
};

GYRE_END
