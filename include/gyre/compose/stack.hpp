// N copies of one layer, each with weights of its own: one instantiation, a loop at run time.
#pragma once

#include <array>

#include <gyre/core/concepts.hpp>

GYRE_BEGIN

template <int N, layer L>
struct stack {
  static_assert(N > 0, "stack: there must be at least one layer");
  static_assert(L::inputs == L::outputs, "stack: a stacked layer must keep the width");
  static constexpr bool is_sequence = true;  // names its members by number
  static constexpr int width = L::inputs, inputs = width, outputs = width, layers = N * detail::layers_in<L>();
  static constexpr index parameter_count = N * L::parameter_count;
  static constexpr index cache_width = N * gyre::cache_width<L>;
  static constexpr bool backward_assigns = true;

  template <class P>
  struct tape {
    std::array<tape_t<L, P>, static_cast<std::size_t>(N)> each;
  };
  template <class P>
  struct carry {
    std::array<carry_t<L, P>, static_cast<std::size_t>(N)> each;
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    for (int i = 0; i < N; ++i) L::visit(v, path{&at, {}, i});
  }
  template <class B, class P>
  static void open_carry(context<B, P>& c, arena& memory, index tokens, int steps, carry<P>& k) {
    for (auto& each : k.each) gyre::open_carry<L>(c, memory, tokens, steps, each);
  }

  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, width> x, rows<activation_t<P>, width> y,
                      tape<P>& t, carry<P>& k) {
    using T = activation_t<P>;
    // Without a backward pass two buffers take turns, and every layer's tape is given back.
    rows<T, width> turns[2];
    if (!c.keep && N > 1)
      for (auto& turn : turns) turn = c.tape.template take_rows<T, width>(x.count);
    for (int i = 0; i < N; ++i) {
      const bool last = i + 1 == N;
      const rows<T, width> out = last ? y : c.keep ? c.tape.template take_rows<T, width>(x.count) : turns[i % 2];
      const passing_frame f(c);
      forward_through<L>(c, w + i * L::parameter_count, x, out, t.each[at(i)], k.each[at(i)]);
      x = out;
    }
  }
  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                       rows<const activation_t<P>, width> dy, rows<activation_t<P>, width> dx, const carry<P>& k, carry<P>& dk,
                       bool accumulate = true) {
    using T = activation_t<P>;
    frame f(c.scratch);
    rows<T, width> turns[2];
    if (N > 1)
      for (auto& turn : turns) turn = c.scratch.template take_rows<T, width>(dy.count);
    for (int i = N - 1; i >= 0; --i) {
      const rows<T, width> out = i == 0 ? dx : turns[i % 2];
      backward_through<L>(c, w + i * L::parameter_count, dw + i * L::parameter_count, t.each[at(i)], dy, out, k.each[at(i)],
                          dk.each[at(i)], accumulate && i == 0);
      dy = out;
    }
  }

 private:
  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }
};

GYRE_END
