// Gated MLP (SwiGLU): y = W_proj (silu(W_gate x) * W_up x), gate and up fused in one matrix `fc`.
#pragma once

#include <gyre/core/dims.hpp>
#include <gyre/layers/linear.hpp>

GYRE_BEGIN

/// recurrent_depth, section 1: `fc` h -> 2 m, rows [gate | up]; `proj` m -> h; no biases.
template <dims D>
struct gated_mlp {
  static_assert(D.width > 0, "gated_mlp: dims.width must be at least 1");
  static_assert(D.mlp > 0, "gated_mlp: dims.mlp must be at least 1");
  static constexpr dims shape = D;
  static constexpr std::string_view name = "mlp";
  static constexpr int width = D.width, inner = D.mlp, inputs = width, outputs = width;
  using fc = linear<width, 2 * inner, linear_options{role::input_projection, {{inner, inner}}}>;
  using proj = linear<inner, width, linear_options{role::output_projection}>;
  static constexpr index parameter_count = fc::parameter_count + proj::parameter_count;
  static constexpr bool takes_groups = true, backward_assigns = true;

  template <class P>
  struct tape {
    tape_t<fc, P> in;
    tape_t<proj, P> out;
    rows<activation_t<P>, 2 * inner> hidden;  // [gate | up]
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    fc::visit(v, path{&at, "fc"});
    proj::visit(v, path{&at, "proj"});
  }

  template <class B, class P, class W>
  static void forward(context<B, P>& c, W w, rows<const activation_t<P>, width> x, rows<activation_t<P>, width> y, tape<P>& t) {
    t.hidden = c.tape.template take_rows<activation_t<P>, 2 * inner>(x.count);
    auto gated = c.tape.template take_rows<activation_t<P>, inner>(x.count);
    fc::forward(c, w, x, t.hidden, t.in);
    c.device.gated_silu(matrix_view<const activation_t<P>>(t.hidden.view()), gated.view());
    proj::forward(c, w + fc::parameter_count, rows<const activation_t<P>, inner>(gated), y, t.out);
  }
  template <class B, class P, class W>
  static void backward(context<B, P>& c, W w, gradient_t<P>* dw, const tape<P>& t, rows<const activation_t<P>, width> dy,
                       rows<activation_t<P>, width> dx, bool accumulate = true) {
    frame f(c.scratch);
    using T = activation_t<P>;
    auto d_gated = c.scratch.template take_rows<T, inner>(dy.count);
    auto d_hidden = c.scratch.template take_rows<T, 2 * inner>(dy.count);
    proj::backward(c, w + fc::parameter_count, dw + fc::parameter_count, t.out, dy, d_gated, false);
    c.device.gated_silu_backward(matrix_view<const T>(t.hidden.view()), matrix_view<const T>(d_gated.view()), d_hidden.view());
    fc::backward(c, w, dw, t.in, rows<const T, 2 * inner>(d_hidden), dx, accumulate);
  }
};

GYRE_END
