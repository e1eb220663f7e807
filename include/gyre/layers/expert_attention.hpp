// Expert attention: a sparse mixture of layers, which a token reads as attention over learned keys.
#pragma once

#include <gyre/core/dims.hpp>
#include <gyre/layers/expert_mixture.hpp>
#include <gyre/layers/gated_mlp.hpp>

GYRE_BEGIN

/// Rules of an expert attention: `experts{.count = 64, .active = 4}`. All numbers are ours. Members lie without padding: see
/// depth_encoding.
struct experts {
  int count = 1, active = 1;  // E, k
  int width = 0;              // m, inner width of an expert; 0: dims.mlp
  int shared_width = 0;       // m_s, of the shared expert; 0: as an expert
  int router_width = 64;      // d_r
  int bias_rows = 1;          // see routing
  depth_encoding encoding = depth_encoding::split;
  double base = 10000;
  double balance_weight = 0, z_weight = 0;  // see routing
  constexpr gyre::routing routing() const {
    return {count, active, router_width, bias_rows, encoding, base, balance_weight, z_weight};
  }
  constexpr bool operator==(const experts&) const = default;
};

namespace detail {
constexpr dims with_mlp(dims d, int mlp) {
  if (mlp > 0) d.mlp = mlp;
  return d;
}
constexpr int or_else(int value, int otherwise) { return value > 0 ? value : otherwise; }
}  // namespace detail

namespace detail {
template <class L, int Width>
consteval bool keeps_width_and_forgets() {
  if constexpr (layer<L>)
    return L::inputs == Width && L::outputs == Width && forgets<L>;
  else
    return false;
}
}  // namespace detail

/// Stands for an absent shared expert.
struct no_shared_expert {};

/// attention_mixtures, section 4: EA(x) = sum over the chosen experts of g_e F_e(x) + s F_shared(x). Experts are gated MLPs unless
/// other layers are given; s is learned and starts at 1.
template <dims D, experts O, class Expert = gated_mlp<detail::with_mlp(D, O.width)>,
          class Shared = gated_mlp<detail::with_mlp(D, detail::or_else(O.shared_width, O.width))>>
struct expert_attention {
  static_assert(D.width > 0, "expert_attention: dims.width must be at least 1");
  static_assert(layer<Expert>, "expert_attention: the expert is not a layer");
  static_assert(Expert::inputs == D.width && Expert::outputs == D.width,
                "expert_attention: an expert must keep the width of the model");
  static constexpr bool shares = !std::is_same_v<Shared, no_shared_expert>;
  static_assert(O.width >= 0 && O.shared_width >= 0,
                "expert_attention: widths of experts must not be negative (0: as dims.mlp)");
  static_assert(
      !shares || detail::keeps_width_and_forgets<Shared, D.width>(),
      "expert_attention: the shared expert must be a layer that keeps the width of the model, without a memory over depths");

  static constexpr dims shape = D;
  static constexpr std::string_view name = "experts";
  static constexpr int width = D.width, inputs = width, outputs = width;
  static constexpr bool backward_assigns = true;
  using chooser = router<width, O.routing()>;
  using mixture = expert_mixture<O.count, Expert>;
  struct nothing {
    static constexpr index parameter_count = 0;
    template <class P>
    struct tape {};
  };
  using shared = std::conditional_t<shares, Shared, nothing>;
  static constexpr index mixture_at = chooser::parameter_count, shared_at = mixture_at + mixture::parameter_count,
                         factor_at = shared_at + shared::parameter_count, parameter_count = factor_at + (shares ? 1 : 0);

  template <class P>
  struct tape {
    tape_t<chooser, P> router;
    tape_t<mixture, P> experts;
    typename shared::template tape<P> beside;
    rows<activation_t<P>, width> shared_result;
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    chooser::visit(v, path{&at, "router"});
    mixture::visit(v, path{&at, "expert"});
    if constexpr (shares) {
      shared::visit(v, path{&at, "shared"});
      v.tensor(path{&at, "shared_scale"}, {1}, role::gain);
    }
  }

  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, width> x, rows<activation_t<P>, width> y,
                      tape<P>& t) {
    using T = activation_t<P>;
    chooser::forward(c, w, x, t.router);
    mixture::forward(c, w + mixture_at, t.router.choice, x, y, t.experts);
    if constexpr (shares) {
      t.shared_result = c.tape.template take_rows<T, width>(x.count);
      carry_t<shared, P> none{};
      forward_through<shared>(c, w + shared_at, x, t.shared_result, t.beside, none);
      c.device.add_scaled(matrix_view<const T>(t.shared_result.view()), w.data + factor_at, y.view());
    }
  }

  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                       rows<const activation_t<P>, width> dy, rows<activation_t<P>, width> dx, bool accumulate = true) {
    using T = activation_t<P>;
    frame f(c.scratch);
    auto* d_gates = chooser::template open_gate_gradient<B, P>(c, dy.count);
    mixture::backward(c, w + mixture_at, dw + mixture_at, t.router.choice, t.experts, dy, dx, d_gates, accumulate);
    chooser::backward(c, w, dw, t.router, d_gates, dx);
    if constexpr (shares) {
      frame g(c.scratch);
      auto d_shared = c.scratch.template take_rows<T, width>(dy.count);
      auto* workspace = c.scratch.template take<gradient_t<P>>(B::add_scaled_backward_workspace(dy.count));
      c.device.fill(d_shared.view(), T(0));
      c.device.add_scaled_backward(matrix_view<const T>(t.shared_result.view()), w.data + factor_at, dy.view(), d_shared.view(),
                                   dw + factor_at, workspace);
      const carry_t<shared, P> none{};
      carry_t<shared, P> no_gradient{};
      backward_through<shared>(c, w + shared_at, dw + shared_at, t.beside, rows<const T, width>(d_shared), dx, none,
                               no_gradient);
    }
  }
};

GYRE_END
