// RMSNorm: y = x / sqrt(mean(x^2) + eps), times a learned gain or none.
#pragma once

#include <gyre/core/concepts.hpp>
#include <gyre/core/dims.hpp>

GYRE_BEGIN

/// Whether a norm has a learned weight.
enum class gain : std::uint8_t { learned, none };

/// Rounded to the storage type before the gain multiplies (recurrent_depth, section 1).
template <dims D, gain Gain = gain::learned, int Width = D.width>
struct rms_norm {
  static_assert(Width > 0, "rms_norm: the width must be at least 1");
  static constexpr int inputs = Width, outputs = Width;
  static constexpr index parameter_count = Gain == gain::learned ? Width : 0;

  template <class P>
  struct tape {
    rows<const activation_t<P>, Width> x;
    statistic_t<P>* rstd = nullptr;  // (tokens)
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    if constexpr (Gain == gain::learned) v.tensor(path{&at, "weight"}, {Width}, role::gain);
  }

  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, Width> x, rows<activation_t<P>, Width> y,
                      tape<P>& t) {
    t = {x, c.tape.template take<statistic_t<P>>(x.count)};
    c.device.rms_norm(x.view(), gains(w), D.norm_eps, y.view(), t.rstd);
  }
  /// The norm of x + f; `sum` receives x + f and may be f.
  template <class B, class P>
  static void forward_of_sum(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, Width> x,
                             rows<const activation_t<P>, Width> f, rows<activation_t<P>, Width> sum,
                             rows<activation_t<P>, Width> y, tape<P>& t) {
    t = {sum, c.tape.template take<statistic_t<P>>(x.count)};
    c.device.add_rms_norm(x.view(), f.view(), gains(w), D.norm_eps, sum.view(), y.view(), t.rstd);
  }
  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                       rows<const activation_t<P>, Width> dy, rows<activation_t<P>, Width> dx) {
    frame f(c.scratch);
    auto* workspace =
        c.scratch.template take<gradient_t<P>>(Gain == gain::learned ? B::rms_norm_backward_workspace(dy.count, Width) : 0);
    c.device.rms_norm_backward(t.x.view(), gains(w), t.rstd, dy.view(), dx.view(), Gain == gain::learned ? dw : nullptr,
                               workspace);
  }

 private:
  template <class W>
  static const typename W::scalar* gains(W w) {
    return Gain == gain::learned ? w.data : nullptr;
  }
};

GYRE_END
