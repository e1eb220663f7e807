// A smallest layer with a carry: each step writes one slot, and reads the mean of all slots up to its own. What it does is of no
// use; it proves that memory shared by the steps works, forward and backward.
#pragma once

#include <gyre/core/concepts.hpp>

namespace gyre_test {

template <int Width>
struct depth_memory {
  static constexpr int inputs = Width, outputs = Width;
  static constexpr gyre::index parameter_count = Width;

  template <class P>
  struct tape {
    gyre::rows<const gyre::activation_t<P>, Width> x;
  };
  template <class P>
  struct carry {
    gyre::activation_t<P>* slots = nullptr;  // (steps, tokens, width)
  };

  template <class V>
  static constexpr void visit(V& v, const gyre::path& at) {
    v.tensor(gyre::path{&at, "scale"}, {Width}, gyre::role::gain);
  }
  template <class B, class P>
  static void open_carry(gyre::context<B, P>&, gyre::arena& memory, gyre::index tokens, int steps, carry<P>& k) {
    k.slots = memory.template take<gyre::activation_t<P>>(steps * tokens * Width);
    for (gyre::index i = 0; i < steps * tokens * Width; ++i) k.slots[i] = gyre::activation_t<P>(0);
  }

  // slot_i = scale * x_i;  y_i = x_i + sum_{j <= i} slot_j / (i + 1)
  template <class B, class P>
  static void forward(gyre::context<B, P>& c, gyre::weights<B, P> w, gyre::rows<const gyre::activation_t<P>, Width> x,
                      gyre::rows<gyre::activation_t<P>, Width> y, tape<P>& t, carry<P>& k) {
    using T = gyre::activation_t<P>;
    t.x = x;
    for (gyre::index n = 0; n < x.size(); ++n) {
      k.slots[c.step * x.size() + n] = w.data[n % Width] * x.data[n];
      T sum(0);
      for (int j = 0; j <= c.step; ++j) sum += k.slots[j * x.size() + n];
      y.data[n] = x.data[n] + sum / T(c.step + 1);
    }
  }
  template <class B, class P>
  static void backward(gyre::context<B, P>& c, gyre::weights<B, P> w, gyre::gradient_t<P>* dw, const tape<P>& t,
                       gyre::rows<const gyre::activation_t<P>, Width> dy, gyre::rows<gyre::activation_t<P>, Width> dx,
                       const carry<P>&, carry<P>& dk) {
    using T = gyre::activation_t<P>;
    for (gyre::index n = 0; n < dy.size(); ++n) {
      for (int j = 0; j <= c.step; ++j) dk.slots[j * dy.size() + n] += dy.data[n] / T(c.step + 1);
      const T d_slot = dk.slots[c.step * dy.size() + n];
      dw[n % Width] += d_slot * t.x.data[n];
      dx.data[n] += dy.data[n] + d_slot * w.data[n % Width];
    }
  }
};

}  // namespace gyre_test
