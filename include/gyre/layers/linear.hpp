// Linear map without bias: y = x W^T.
#pragma once

#include <type_traits>

#include <gyre/core/concepts.hpp>

GYRE_BEGIN

struct linear_options {
  role kind = role::input_projection;
  tensor_parts parts{};  // of a fused matrix
  constexpr bool operator==(const linear_options&) const = default;
};

template <int In, int Out, linear_options O = linear_options{}>
struct linear {
  static_assert(In > 0 && Out > 0, "linear: both widths must be at least 1");
  static constexpr int inputs = In, outputs = Out;
  static constexpr index parameter_count = index{In} * Out;
  static constexpr bool takes_groups = true, backward_assigns = true;

  template <class P>
  struct tape {
    rows<const activation_t<P>, In> x;
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    v.tensor(path{&at, "weight"}, {Out, In}, O.kind, O.parts);
  }

  /// W: weights, or group_weights.
  template <class B, class P, class W>
  static void forward(context<B, P>& c, W w, rows<const activation_t<P>, In> x, rows<activation_t<P>, Out> y, tape<P>& t) {
    t.x = x;
    if constexpr (std::is_same_v<W, group_weights<B, P>>)
      c.device.grouped_product(x.view(), w.matrix(Out, In), w.groups, y.view(), false);
    else
      c.device.product(x.view(), w.matrix(Out, In), y.view(), false);
  }
  template <class B, class P, class W>
  static void backward(context<B, P>& c, W w, gradient_t<P>* dw, const tape<P>& t, rows<const activation_t<P>, Out> dy,
                       rows<activation_t<P>, In> dx, bool accumulate = true) {
    const matrix_view<gradient_t<P>> d(dw, Out, In);
    if constexpr (std::is_same_v<W, group_weights<B, P>>) {
      c.device.grouped_product_weight_gradient(dy.view(), t.x.view(), w.groups, d);
      c.device.grouped_product_input_gradient(dy.view(), w.matrix(Out, In), w.groups, dx.view(), accumulate);
    } else {
      c.device.product_weight_gradient(dy.view(), t.x.view(), d);
      c.device.product_input_gradient(dy.view(), w.matrix(Out, In), dx.view(), accumulate);
    }
  }
};

GYRE_END
