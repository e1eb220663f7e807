// Layers one after the other, each with its own weights.
#pragma once

#include <gyre/core/concepts.hpp>

GYRE_BEGIN

/// First, then the rest. Members are named by their place.
template <layer First, layer... Rest>
struct chain {
  using rest = chain<Rest...>;
  static_assert(First::outputs == rest::inputs,
                "chain: the output width of a layer must equal the input width of the layer after it");
  static constexpr bool is_sequence = true;  // names its members by number
  static constexpr int layers = detail::layers_in<First>() + rest::layers;
  static constexpr int inputs = First::inputs, outputs = rest::outputs, middle = First::outputs;
  static constexpr index parameter_count = First::parameter_count + rest::parameter_count;
  static constexpr index cache_width = gyre::cache_width<First> + gyre::cache_width<rest>;
  static constexpr bool backward_assigns = true;

  template <class P>
  struct tape {
    tape_t<First, P> first;
    tape_t<rest, P> others;
  };
  template <class P>
  struct carry {
    carry_t<First, P> first;
    carry_t<rest, P> others;
  };

  template <class V>
  static constexpr void visit(V& v, const path& at, int number = 0) {
    First::visit(v, path{&at, {}, number});
    rest::visit(v, at, number + 1);
  }
  template <class B, class P>
  static void open_carry(context<B, P>& c, arena& memory, index tokens, int steps, carry<P>& k) {
    gyre::open_carry<First>(c, memory, tokens, steps, k.first);
    gyre::open_carry<rest>(c, memory, tokens, steps, k.others);
  }

  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, inputs> x,
                      rows<activation_t<P>, outputs> y, tape<P>& t, carry<P>& k) {
    using T = activation_t<P>;
    auto between = c.tape.template take_rows<T, middle>(x.count);
    {
      const passing_frame f(c);
      forward_through<First>(c, w, x, between, t.first, k.first);
    }
    forward_through<rest>(c, w + First::parameter_count, rows<const T, middle>(between), y, t.others, k.others);
  }
  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                       rows<const activation_t<P>, outputs> dy, rows<activation_t<P>, inputs> dx, const carry<P>& k,
                       carry<P>& dk, bool accumulate = true) {
    using T = activation_t<P>;
    frame f(c.scratch);
    auto between = c.scratch.template take_rows<T, middle>(dy.count);
    backward_through<rest>(c, w + First::parameter_count, dw + First::parameter_count, t.others, dy, between, k.others,
                           dk.others, false);
    backward_through<First>(c, w, dw, t.first, rows<const T, middle>(between), dx, k.first, dk.first, accumulate);
  }
};

template <layer Last>
struct chain<Last> : Last {
  static constexpr bool is_sequence = true;
  static constexpr int layers = detail::layers_in<Last>();
  template <class V>
  static constexpr void visit(V& v, const path& at, int number = 0) {
    Last::visit(v, path{&at, {}, number});
  }
};

GYRE_END
