// Keeps only a layer's input and runs its forward pass again in backward: less memory, about a third more time.
#pragma once

#include <gyre/core/concepts.hpp>

GYRE_BEGIN

namespace detail {
template <class L>
struct numbering_of {};
template <class L>
requires L::is_sequence struct numbering_of<L> {
  static constexpr bool is_sequence = true;
  static constexpr int layers = L::layers;
};
}  // namespace detail

/// The gradient is bitwise that of L. A checkpoint of a stack is numbered like the stack. As the body of a recurrence it makes
/// every taped step cost one state instead of its tape.
template <layer L>
struct checkpoint : detail::numbering_of<L> {
  static constexpr int inputs = L::inputs, outputs = L::outputs;
  static constexpr index parameter_count = L::parameter_count;
  static constexpr index cache_width = gyre::cache_width<L>;

  template <class P>
  struct tape {
    rows<const activation_t<P>, inputs> x;
    int step = -1;
  };
  template <class P>
  struct carry {
    carry_t<L, P> inner;
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    L::visit(v, at);
  }
  template <class B, class P>
  static void open_carry(context<B, P>& c, arena& memory, index tokens, int steps, carry<P>& k) {
    gyre::open_carry<L>(c, memory, tokens, steps, k.inner);
  }

  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, inputs> x,
                      rows<activation_t<P>, outputs> y, tape<P>& t, carry<P>& k) {
    t = {x, c.step};
    frame memory(c.tape);
    frame records(c.records);
    tape_t<L, P> inner{};
    const bool keep = c.keep;
    c.keep = false;
    forward_through<L>(c, w, x, y, inner, k.inner);
    c.keep = keep;
  }
  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                       rows<const activation_t<P>, outputs> dy, rows<activation_t<P>, inputs> dx, const carry<P>& k,
                       carry<P>& dk) {
    frame memory(c.tape);
    frame records(c.records);
    tape_t<L, P> inner{};
    auto y = c.tape.template take_rows<activation_t<P>, outputs>(dy.count);
    const int step = c.step;
    auto* const observer = c.observer;
    c.step = t.step;
    c.observer = nullptr;  // has heard of this already
    carry<P> again = k;    // the same slots: running a step again writes what is there already
    forward_through<L>(c, w, t.x, y, inner, again.inner);
    backward_through<L>(c, w, dw, inner, dy, dx, k.inner, dk.inner);
    c.step = step;
    c.observer = observer;
  }
};

GYRE_END
