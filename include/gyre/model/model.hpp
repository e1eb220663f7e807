// The model: embedding, prelude, recurrence, coda, head. A type that describes; network.hpp gives it data.
#pragma once

#include <cmath>
#include <span>

#include <gyre/core/dims.hpp>
#include <gyre/layers/rms_norm.hpp>
#include <gyre/model/sections.hpp>

GYRE_BEGIN

/// recurrent_depth, section 1:
///   e = prelude(gamma E[x]);  s_i = core(inject(s_{i-1}, e)), i = 1..r;  logits = W_head n_c(coda(n_c(s_r)))
/// n_c is one weight used twice. Parts, in any order: prelude<…>, recurrent<…>, coda<…>, options<…>, initialised<…>; all but
/// recurrent may be left out. Name a model by inheriting: `struct Huginn : gyre::model<tiny, …> {};`
template <dims D, class... Parts>
struct model {
  static constexpr dims shape = D;
  static constexpr int width = D.width;
  static_assert(D.vocab > 0, "model: dims.vocab must be at least 1");
  static_assert(D.context > 0, "model: dims.context must be at least 1");
  static_assert((int{detail::is_recurrent<Parts>} + ... + 0) == 1, "model: there must be exactly one recurrent section");
  static_assert((int{detail::is_prelude<Parts>} + ... + 0) <= 1 && (int{detail::is_coda<Parts>} + ... + 0) <= 1,
                "model: at most one prelude and one coda");
  static_assert(((detail::is_recurrent<Parts> || detail::is_prelude<Parts> || detail::is_coda<Parts> ||
                  detail::is_options<Parts> || detail::is_scheme<Parts>)&&...),
                "model: a part is neither prelude, recurrent, coda, options nor initialised");

  using loop = typename detail::pick<detail::wants_recurrent, void, Parts...>::type;
  using prelude_layers = typename detail::pick<detail::wants_prelude, detail::absent, Parts...>::type::layers;
  using coda_layers = typename detail::pick<detail::wants_coda, detail::absent, Parts...>::type::layers;
  using scheme = typename detail::pick<detail::wants_scheme, initialised<huginn_initialisation>, Parts...>::type::scheme;
  static constexpr model_options rules = detail::pick<detail::wants_options, options<model_options{}>, Parts...>::type::value;
  static constexpr bool has_prelude = (detail::is_prelude<Parts> || ...), has_coda = (detail::is_coda<Parts> || ...);
  using norm = rms_norm<D, rules.final_gain>;
  static_assert(loop::width == width, "model: the recurrence's width must be dims.width");

  static constexpr index embedding_at = 0, prelude_at = index{D.vocab} * width,
                         loop_at = prelude_at + prelude_layers::parameter_count, coda_at = loop_at + loop::parameter_count,
                         norm_at = coda_at + coda_layers::parameter_count,
                         head_at = rules.tied_head ? embedding_at : norm_at + norm::parameter_count,
                         parameter_count = norm_at + norm::parameter_count + (rules.tied_head ? 0 : index{D.vocab} * width);
  /// Scalars a token in a generator's cache: slots of prelude, then coda, then each step of the loop.
  static constexpr index fixed_cache_width = cache_width<prelude_layers> + cache_width<coda_layers>,
                         step_cache_width = loop::cache_width;

  static constexpr int prelude_depth = has_prelude ? detail::layers_in<prelude_layers>() : 0, core_depth = loop::layers,
                       coda_depth = has_coda ? detail::layers_in<coda_layers>() : 0;
  static constexpr model_facts facts{width, prelude_depth + static_cast<double>(D.mean_steps) * core_depth + coda_depth};
  static double embedding_scale() { return rules.embedding_scale > 0 ? rules.embedding_scale : std::sqrt(double{width}); }

  /// Tensor names are those of the published checkpoints (recurrent_depth, section 6).
  template <class V>
  static constexpr void visit(V& v, const path& root) {
    const path at{&root, "transformer"};
    const path wte{&at, "wte"};
    v.tensor(path{&wte, "weight"}, {D.vocab, width}, role::embedding);
    if constexpr (has_prelude) prelude_layers::visit(v, path{&at, "prelude"});
    loop::visit(v, at);
    if constexpr (has_coda) coda_layers::visit(v, path{&at, "coda"});
    norm::visit(v, path{&at, "ln_f"});
    const path head{&root, "lm_head"};
    if constexpr (!rules.tied_head) v.tensor(path{&head, "weight"}, {D.vocab, width}, role::head);
  }

  template <class P>
  struct tape {
    tape_t<prelude_layers, P> before;
    typename loop::template tape<P> steps;
    tape_t<coda_layers, P> after;
    carry_t<prelude_layers, P> before_carry;
    carry_t<coda_layers, P> after_carry;
    tape_t<norm, P> loop_norm, final_norm;
    rows<const activation_t<P>, width> e, hidden;  // input of the loop; input of the head
  };

  /// gamma E[x] through the prelude: e.
  template <class B, class P>
  static rows<const activation_t<P>, width> embed(context<B, P>& c, weights<B, P> w, std::span<const token> ids, tape<P>& t) {
    using T = activation_t<P>;
    auto e = c.tape.template take_rows<T, width>(static_cast<index>(ids.size()));
    c.device.embed(w.matrix(D.vocab, width).raw, ids, embedding_scale(), e.view());
    if constexpr (has_prelude) {
      auto out = c.tape.template take_rows<T, width>(e.count);
      open_carry<prelude_layers>(c, c.tape, e.count, 1, t.before_carry);
      const passing_frame f(c);
      forward_through<prelude_layers>(c, w + prelude_at, rows<const T, width>(e), out, t.before, t.before_carry);
      e = out;
    }
    return t.e = e;
  }
  /// From s_r to the input of the head: n_c(coda(n_c(s_r))).
  template <class B, class P>
  static rows<const activation_t<P>, width> finish(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, width> s,
                                                   tape<P>& t) {
    using T = activation_t<P>;
    if constexpr (loop::norm_follows) {
      auto normed = c.tape.template take_rows<T, width>(s.count);
      norm::forward(c, w + norm_at, s, normed, t.loop_norm);
      s = normed;
    }
    if constexpr (has_coda) {
      auto out = c.tape.template take_rows<T, width>(s.count);
      open_carry<coda_layers>(c, c.tape, s.count, 1, t.after_carry);
      const passing_frame f(c);
      forward_through<coda_layers>(c, w + coda_at, s, out, t.after, t.after_carry);
      s = out;
    }
    auto hidden = c.tape.template take_rows<T, width>(s.count);
    norm::forward(c, w + norm_at, s, hidden, t.final_norm);
    return t.hidden = hidden;
  }

  /// The whole model up to the head. Returns the head's input and keeps in `t` what backward needs.
  template <class B, class P>
  static rows<const activation_t<P>, width> forward(context<B, P>& c, weights<B, P> w, std::span<const token> ids,
                                                    state_key key, depth_draw draw, tape<P>& t) {
    using T = activation_t<P>;
    const auto e = embed(c, w, ids, t);
    auto s0 = c.tape.template take_rows<T, width>(e.count);
    loop::state_policy::template fill<B, P, width>(c, key, e, s0);
    const auto s = loop::forward(c, w + loop_at, e, rows<const T, width>(s0), draw, t.steps);
    return finish(c, w, s, t);
  }
  /// From the gradient of the head's input to the gradients of all parameters (which accumulate), the head's apart.
  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, std::span<const token> ids, const tape<P>& t,
                       rows<const activation_t<P>, width> d_hidden) {
    using T = activation_t<P>;
    frame f(c.scratch);
    const auto zeroed = [&] {
      auto r = c.scratch.template take_rows<T, width>(d_hidden.count);
      c.device.fill(r.view(), T(0));
      return r;
    };
    auto d = zeroed();
    norm::backward(c, w + norm_at, dw + norm_at, t.final_norm, d_hidden, d);
    if constexpr (has_coda) {
      auto into = zeroed();
      carry_t<coda_layers, P> dk{};
      open_carry<coda_layers>(c, c.scratch, d.count, 1, dk);
      backward_through<coda_layers>(c, w + coda_at, dw + coda_at, t.after, rows<const T, width>(d), into, t.after_carry, dk);
      d = into;
    }
    if constexpr (loop::norm_follows) {
      auto into = zeroed();
      norm::backward(c, w + norm_at, dw + norm_at, t.loop_norm, rows<const T, width>(d), into);
      d = into;
    }
    auto de = zeroed();
    loop::backward(c, w + loop_at, dw + loop_at, t.steps, rows<const T, width>(d), de);
    if constexpr (has_prelude) {
      auto into = zeroed();
      carry_t<prelude_layers, P> dk{};
      open_carry<prelude_layers>(c, c.scratch, de.count, 1, dk);
      backward_through<prelude_layers>(c, w + prelude_at, dw + prelude_at, t.before, rows<const T, width>(de), into,
                                       t.before_carry, dk);
      de = into;
    }
    c.device.embed_backward(matrix_view<const T>(de.view()), ids, embedding_scale(),
                            matrix_view<gradient_t<P>>(dw, D.vocab, width));
  }

  /// logits = W_head hidden, (tokens, vocab).
  template <class B, class P>
  static void logits(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, width> hidden,
                     matrix_view<statistic_t<P>> out) {
    c.device.product(hidden.view(), (w + head_at).matrix(D.vocab, width), out, false);
  }

  /// Rows whose logits exist at one time.
  static constexpr index head_chunk = 256;

  /// Cross-entropy of every row, unscaled, into `losses` (tokens); rows whose target is negative give 0. With `dw`, also adds
  /// the gradient of scale * sum(losses) to the head's weights and writes that of `hidden` to `d_hidden`. Logits exist a chunk
  /// of rows at a time.
  template <class B, class P>
  static void loss(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, rows<const activation_t<P>, width> hidden,
                   std::span<const token> targets, statistic_t<P> scale, statistic_t<P>* losses,
                   rows<activation_t<P>, width> d_hidden) {
    using T = activation_t<P>;
    const auto matrix = (w + head_at).matrix(D.vocab, width);
    for (index first = 0; first < hidden.count; first += head_chunk) {
      const index n = (std::min)(head_chunk, hidden.count - first);
      frame f(c.scratch);
      const matrix_view<T> z(c.scratch.template take<T>(n * D.vocab), n, D.vocab);
      const matrix_view<const T> h = hidden.view().slice(first, n);
      c.device.product(h, matrix, z, false);
      c.device.cross_entropy(z, targets.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n)), scale,
                             losses + first, dw != nullptr);
      if (dw == nullptr) continue;
      c.device.product_weight_gradient(matrix_view<const T>(z), h, matrix_view<gradient_t<P>>(dw + head_at, D.vocab, width));
      c.device.product_input_gradient(matrix_view<const T>(z), matrix, d_hidden.view().slice(first, n), false);
    }
  }
};

/// What a network, a trainer and a generator need of a model type.
template <class A>
concept architecture = std::is_empty_v<A> && requires {
  { A::parameter_count } -> std::convertible_to<index>;
  { A::width } -> std::convertible_to<int>;
  { A::shape } -> std::convertible_to<dims>;
  typename A::loop;
  typename A::scheme;
  typename A::template tape<fp64>;
};

GYRE_END
