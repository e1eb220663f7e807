// Injection: how the input e enters every step of a recurrence.
#pragma once

#include <gyre/core/concepts.hpp>

GYRE_BEGIN

/// An injection computes z = inject(s, e), which the body then reads. What depends on e alone is `prepared` once per call, so
/// that a step pays only for the state. An injection is bound to a width: `bind<W>` has
///   parameter_count, visit, tape<P>
///   prepare(c, w, e) -> rows<const T, W>                      once per call
///   forward(c, w, s, prepared, tape&) -> rows<const T, W>     z; may be s itself
///   backward(c, w, dw, tape, dz, ds)                          assigns ds
///   backward_prepared(c, w, dw, e, dz_sum, de)                de accumulates; dz_sum is dz summed over the steps with gradient
/// `uses_input`: whether e enters at all.
namespace inject {

/// z = A [s ; e], A (W, 2 W) without bias: columns 0 .. W-1 multiply the state (recurrent_depth, section 1).
struct concat {
  static constexpr bool uses_input = true;
  template <int W>
  struct bind {
    static constexpr index parameter_count = index{2} * W * W;
    template <class P>
    struct tape {
      rows<const activation_t<P>, W> s;
    };
    template <class V>
    static constexpr void visit(V& v, const path& at) {
      const path adapter{&at, "adapter"};
      v.tensor(path{&adapter, "weight"}, {W, 2 * W}, role::adapter, {.columns = 2});
    }
    template <class B, class P>
    static rows<const activation_t<P>, W> prepare(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, W> e) {
      auto from_e = c.tape.template take_rows<activation_t<P>, W>(e.count);
      c.device.product(e.view(), w.matrix_columns(W, 2 * W, W, W), from_e.view(), false);
      return from_e;
    }
    template <class B, class P>
    static rows<const activation_t<P>, W> forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, W> s,
                                                  rows<const activation_t<P>, W> prepared, tape<P>& t) {
      t.s = s;
      auto z = c.tape.template take_rows<activation_t<P>, W>(s.count);
      c.device.copy(prepared.view(), z.view());
      c.device.product(s.view(), w.matrix_columns(W, 2 * W, 0, W), z.view(), true);
      return z;
    }
    template <class B, class P>
    static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                         rows<const activation_t<P>, W> dz, rows<activation_t<P>, W> ds) {
      c.device.product_weight_gradient(dz.view(), t.s.view(), matrix_view<gradient_t<P>>(dw, W, W, 2 * W));
      c.device.product_input_gradient(dz.view(), w.matrix_columns(W, 2 * W, 0, W), ds.view(), false);
    }
    template <class B, class P>
    static void backward_prepared(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, rows<const activation_t<P>, W> e,
                                  rows<const activation_t<P>, W> dz_sum, rows<activation_t<P>, W> de) {
      c.device.product_weight_gradient(dz_sum.view(), e.view(), matrix_view<gradient_t<P>>(dw + W, W, W, 2 * W));
      c.device.product_input_gradient(dz_sum.view(), w.matrix_columns(W, 2 * W, W, W), de.view(), true);
    }
  };
};

namespace detail {

/// What injections without parameters share: e is used as it is, and the state's gradient is z's.
template <int W>
struct without_parameters {
  static constexpr index parameter_count = 0;
  template <class P>
  struct tape {};
  template <class V>
  static constexpr void visit(V&, const path&) {}
  template <class B, class P>
  static rows<const activation_t<P>, W> prepare(context<B, P>&, weights<B, P>, rows<const activation_t<P>, W> e) {
    return e;
  }
  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P>, gradient_t<P>*, const tape<P>&, rows<const activation_t<P>, W> dz,
                       rows<activation_t<P>, W> ds) {
    c.device.copy(dz.view(), ds.view());
  }
};

}  // namespace detail

/// z = s + e.
struct add {
  static constexpr bool uses_input = true;
  template <int W>
  struct bind : detail::without_parameters<W> {
    template <class P>
    using tape = typename detail::without_parameters<W>::template tape<P>;
    template <class B, class P>
    static rows<const activation_t<P>, W> forward(context<B, P>& c, weights<B, P>, rows<const activation_t<P>, W> s,
                                                  rows<const activation_t<P>, W> prepared, tape<P>&) {
      auto z = c.tape.template take_rows<activation_t<P>, W>(s.count);
      c.device.copy(s.view(), z.view());
      c.device.add(prepared.view(), z.view());
      return z;
    }
    template <class B, class P>
    static void backward_prepared(context<B, P>& c, weights<B, P>, gradient_t<P>*, rows<const activation_t<P>, W>,
                                  rows<const activation_t<P>, W> dz_sum, rows<activation_t<P>, W> de) {
      c.device.add(dz_sum.view(), de.view());
    }
  };
};

/// z = s: the input is in the initial state alone.
struct none {
  static constexpr bool uses_input = false;
  template <int W>
  struct bind : detail::without_parameters<W> {
    template <class P>
    using tape = typename detail::without_parameters<W>::template tape<P>;
    template <class B, class P>
    static rows<const activation_t<P>, W> forward(context<B, P>&, weights<B, P>, rows<const activation_t<P>, W> s,
                                                  rows<const activation_t<P>, W>, tape<P>&) {
      return s;
    }
    template <class B, class P>
    static void backward_prepared(context<B, P>&, weights<B, P>, gradient_t<P>*, rows<const activation_t<P>, W>,
                                  rows<const activation_t<P>, W>, rows<activation_t<P>, W>) {}
  };
};

}  // namespace inject

GYRE_END
