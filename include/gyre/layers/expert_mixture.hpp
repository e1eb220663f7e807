// Copies of one layer with weights of their own, of which every token uses a few: tokens are gathered by expert, so that experts
// which nobody chose cost nothing.
#pragma once

#include <gyre/core/precision.hpp>
#include <gyre/layers/router.hpp>

GYRE_BEGIN

namespace detail {
/// Whether the layer has no carry, or one without pointers, as a combinator of layers without a carry has.
template <class L>
inline constexpr bool forgets = alignof(carry_t<L, fp32>) == 1;
/// Whether the layer treats rows one by one: no attention over the sequence, and no router, which reports on whole batches.
struct row_visitor {
  bool alone = true;
  constexpr void tensor(const path&, tensor_shape, role r, tensor_parts = {}) { alone = alone && r != role::selection_bias; }
  constexpr void rotary(rotary_spec) { alone = false; }
};
template <class L>
consteval bool treats_rows_alone() {
  row_visitor v;
  L::visit(v, path{});
  return v.alone && gyre::cache_width<L> == 0;
}
}  // namespace detail

/// y = sum over the chosen experts of gate_e F_e(x). Nothing is dropped: an expert takes as many tokens as chose it, or none.
///
/// F is any layer without a carry that treats rows one by one. Layers that take groups run all experts at once; others run expert
/// after expert, for which the backend's memory must be the host's, and a plan's tape bytes are a bound then. One expert is F
/// itself, bit for bit.
template <int Count, layer F>
struct expert_mixture {
  static constexpr bool mixes = Count > 1, together = detail::takes_groups<F>;
  static_assert(Count > 0, "expert_mixture: there must be at least one expert");
  static_assert(!mixes || detail::forgets<F>,
                "expert_mixture: an expert must not have a memory over depths, for its rows change");
  static_assert(
      !mixes || detail::treats_rows_alone<F>(),
      "expert_mixture: an expert must treat rows one by one; attention over the sequence and routers need whole batches");
  static constexpr int inputs = F::inputs, outputs = F::outputs;
  static constexpr index parameter_count = Count * F::parameter_count;

  template <class P>
  struct tape {
    rows<activation_t<P>, inputs> gathered;  // (pairs), by expert
    rows<activation_t<P>, outputs> results;  // (pairs), by expert
    tape_t<F, P>* each = nullptr;            // one for all together, or one an expert
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    if constexpr (mixes)
      for (int e = 0; e < Count; ++e) F::visit(v, path{&at, {}, e});
    else
      F::visit(v, at);
  }

  /// Assigns y.
  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, const routing_choice<P>& k, rows<const activation_t<P>, inputs> x,
                      rows<activation_t<P>, outputs> y, tape<P>& t) {
    using T = activation_t<P>;
    t.each = c.records.template take<tape_t<F, P>>(mixes && !together ? Count : 1);
    if constexpr (!mixes) {
      (void)k;
      forward_of(c, w, x, y, *t.each);
    } else {
      const index pairs = x.count * k.active;
      t.gathered = c.tape.template take_rows<T, inputs>(pairs);
      t.results = c.tape.template take_rows<T, outputs>(pairs);
      const rows<const T, inputs> gathered = t.gathered;
      c.device.spread(x.view(), static_cast<const std::int32_t*>(k.source), k.active, t.gathered.view());
      if constexpr (together) {
        F::forward(c, group_weights<B, P>{w, k.groups(F::parameter_count)}, gathered, t.results, *t.each);
      } else {
        c.device.finish();  // each_expert reads on the host how many rows an expert has
        each_expert<B>(c, k, pairs, [&](int e, index first, index n) {
          forward_of(c, w + e * F::parameter_count, part(gathered, first, n), part(t.results, first, n), t.each[e]);
        });
      }
      c.device.fill(y.view(), T(0));
      c.device.collect(matrix_view<const T>(t.results.view()), static_cast<const std::int32_t*>(k.place),
                       static_cast<const statistic_t<P>*>(k.gates), k.active, y.view());
    }
  }

  /// dw and the gradient of the gates accumulate; dx too, unless `accumulate` is false.
  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const routing_choice<P>& k, const tape<P>& t,
                       rows<const activation_t<P>, outputs> dy, rows<activation_t<P>, inputs> dx, statistic_t<P>* d_gates,
                       bool accumulate = true) {
    using T = activation_t<P>;
    if constexpr (!mixes) {
      (void)k, (void)d_gates;
      backward_of(c, w, dw, *t.each, dy, dx, accumulate);
    } else {
      frame f(c.scratch);
      const index pairs = dy.count * k.active;
      auto d_results = c.scratch.template take_rows<T, outputs>(pairs);
      auto d_gathered = c.scratch.template take_rows<T, inputs>(pairs);
      const auto* place = static_cast<const std::int32_t*>(k.place);
      c.device.collect_backward(dy.view(), matrix_view<const T>(t.results.view()), place,
                                static_cast<const statistic_t<P>*>(k.gates), k.active, d_results.view(), d_gates);
      const rows<const T, outputs> d = d_results;
      if constexpr (together)
        F::backward(c, group_weights<B, P>{w, k.groups(F::parameter_count)}, dw, *t.each, d, d_gathered, false);
      else
        each_expert<B>(c, k, pairs, [&](int e, index first, index n) {
          backward_of(c, w + e * F::parameter_count, dw + e * F::parameter_count, t.each[e], part(d, first, n),
                      part(d_gathered, first, n), false);
        });
      if (!accumulate) c.device.fill(dx.view(), T(0));
      c.device.collect(matrix_view<const T>(d_gathered.view()), place, static_cast<const statistic_t<P>*>(nullptr), k.active,
                       dx.view());
    }
  }

 private:
  template <class Rows>
  static Rows part(Rows all, index first, index n) {
    return {all.data + first * Rows::cols, n};
  }
  template <class B, class P>
  static void forward_of(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, inputs> x,
                         rows<activation_t<P>, outputs> y, tape_t<F, P>& t) {
    carry_t<F, P> none{};
    forward_through<F>(c, w, x, y, t, none);
  }
  template <class B, class P>
  static void backward_of(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape_t<F, P>& t,
                          rows<const activation_t<P>, outputs> dy, rows<activation_t<P>, inputs> dx, bool accumulate) {
    const carry_t<F, P> none{};
    carry_t<F, P> no_gradient{};
    backward_through<F>(c, w, dw, t, dy, dx, none, no_gradient, accumulate);
  }
  // Runs every expert that has rows. A plan cannot know how rows fall to experts: one gets all, and each a row beside, which
  // covers the rounding of every expert's memory to whole lines; only the first is counted.
  template <class B, class Context, class P, class Run>
  static void each_expert(Context& c, const routing_choice<P>& k, index pairs, Run run) {
    if constexpr (requires { B::plans_only; }) {
      run(0, 0, pairs);
      const auto costs = c.device.costs;
      for (int e = 0; e < Count; ++e) run(e, 0, (std::min)(pairs, index{1}));
      c.device.costs = costs;
    } else {
      for (int e = 0; e < Count; ++e)
        if (const index n = k.offsets[e + 1] - k.offsets[e]; n > 0) run(e, k.offsets[e], n);
    }
  }
};

GYRE_END
