// The router of a sparse mixture: which experts a token uses, and with which weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include <gyre/layers/depth_turn.hpp>
#include <gyre/layers/linear.hpp>
#include <gyre/ops/routing.hpp>

GYRE_BEGIN

/// Rules of a router. The paper gives the formula of the gates and the encoding of depth in the query; the numbers are ours.
/// Members lie without padding: see depth_encoding.
struct routing {
  int count = 1;          // experts, E
  int active = 1;         // of them used by a token, k
  int router_width = 64;  // of queries and keys, d_r
  int bias_rows = 1;  // of the selection bias: 1 pools all depths; D gives each of the first D - 1 steps its own, the rest one
  depth_encoding encoding = depth_encoding::split;
  double base = 10000;  // of the encoding
  // Weights of auxiliary losses, which are summed over steps and, like the loss of tokens, divided by the counted targets.
  double balance_weight =
      0;                // of the sequence-wise balance loss, E / k sum over experts of (share of tokens) (mean probability)
  double z_weight = 0;  // of logsumexp(x)^2
  constexpr bool operator==(const routing&) const = default;
};

/// A router's choice for some rows: views in the tape. A pair is a row with one of its experts, number row * active + slot.
template <class P>
struct routing_choice {
  index experts = 0, active = 0;
  std::int32_t* chosen = nullptr;    // (tokens, active): experts, ascending in a row
  statistic_t<P>* logits = nullptr;  // (tokens, active)
  statistic_t<P>* gates = nullptr;   // (tokens, active)
  // Pairs sorted by expert: those of expert e are rows [offsets[e], offsets[e + 1]); pair p is row place[p], source[place[p]] = p.
  std::int32_t *offsets = nullptr, *place = nullptr, *source = nullptr;

  row_groups groups(index stride) const { return {offsets, experts, stride}; }
};

/// attention_mixtures, section 4: q = RoSE(W_q x, l); x_e = q . K_e / sqrt(d_r); the k experts with the largest x_e + b_e; gates
/// sigmoid(x_e) over their sum, with k = 1 of several experts the sigmoid itself. b is state, which balances load without a loss.
/// One expert needs no router: it has no parameters then.
template <int Width, routing R>
struct router {
  static_assert(R.count > 0, "router: there must be at least one expert");
  static_assert(R.active > 0, "router: a token must use at least one expert");
  static_assert(R.active <= R.count, "router: a token cannot use more experts than there are (active <= count)");
  static_assert(R.router_width > 0, "router: router_width must be at least 1");
  static_assert(R.base > 0, "router: the base of the depth encoding must be positive");
  static_assert(R.balance_weight >= 0 && R.z_weight >= 0, "router: the weights of its losses must not be negative");
  static_assert(R.bias_rows > 0, "router: the selection bias must have at least one row");
  static_assert(R.encoding != depth_encoding::forward || R.router_width % 2 == 0,
                "router: the forward encoding turns pairs, so router_width must be even");
  static_assert(R.encoding != depth_encoding::split || R.router_width % 4 == 0,
                "router: the split encoding turns two halves of pairs, so router_width must be a multiple of 4");

  static constexpr bool routes = R.count > 1;
  static constexpr int inputs = Width, query_width = R.router_width;
  using query = linear<Width, query_width>;
  static constexpr index keys_at = query::parameter_count, bias_at = keys_at + index{R.count} * query_width,
                         parameter_count = routes ? bias_at + index{R.bias_rows} * R.count : 0;
  static constexpr bool has_losses = R.balance_weight != 0 || R.z_weight != 0;
  /// Rows whose scores exist at one time; a loss over sequences wants all of them.
  static constexpr index chunk = has_losses ? (std::numeric_limits<index>::max)() : 1024;
  static constexpr router_loss_weights loss_weights{R.balance_weight, R.z_weight};

  template <class P>
  struct tape {
    tape_t<query, P> in;
    rows<activation_t<P>, query_width> q;  // turned
    routing_choice<P> choice;
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    if constexpr (routes) {
      query::visit(v, path{&at, "query"});
      v.tensor(path{&at, "keys"}, {R.count, query_width}, role::expert_key);
      v.tensor(path{&at, "bias"}, {R.bias_rows, R.count}, role::selection_bias);
    }
  }

  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, Width> x, tape<P>& t) {
    if constexpr (routes) {
      using T = activation_t<P>;
      using S = statistic_t<P>;
      const index tokens = x.count, pairs = tokens * R.active;
      t.q = c.tape.template take_rows<T, query_width>(tokens);
      routing_choice<P>& k = t.choice;
      k.experts = R.count, k.active = R.active;
      k.chosen = c.tape.template take<std::int32_t>(pairs);
      k.logits = c.tape.template take<S>(pairs);
      k.gates = c.tape.template take<S>(pairs);
      k.offsets = c.tape.template take<std::int32_t>(R.count + 1);
      k.place = c.tape.template take<std::int32_t>(pairs);
      k.source = c.tape.template take<std::int32_t>(pairs);
      query::forward(c, w, x, t.q, t.in);
      detail::turn_by_depth<query_width>(c, R.encoding, R.base, t.q.view(), false);
      const detail::depth_place at = detail::depth_of(c);
      const int bias_row = (std::min)(at.step, R.bias_rows - 1);
      if (R.bias_rows > 1) c.step_matters = true;
      each_chunk(tokens, [&](index first, index n) {
        frame f(c.scratch);
        const matrix_view<S> scores(c.scratch.template take<S>(n * R.count), n, R.count);
        c.device.product(queries(t, first, n), keys(w), scores, false);
        const S* const bias = in_statistics(c, w.data + bias_at + index{bias_row} * R.count);
        c.device.route(matrix_view<const S>(scores), bias, scale(), R.active, k.chosen + first * R.active,
                       k.logits + first * R.active, k.gates + first * R.active);
        if constexpr (has_losses) {
          if (c.auxiliary_loss != nullptr) {
            const auto sequences = static_cast<index>(c.layout.sequences().size());
            S* const losses = c.scratch.template take<S>(sequences + 1);  // the last: their sum
            c.device.router_loss(matrix_view<const S>(scores), scale(), static_cast<const std::int32_t*>(k.chosen), R.active,
                                 c.layout, loss_weights, losses);
            c.device.sum(static_cast<const S*>(losses), sequences, losses + sequences);
            c.device.add(matrix_view<const S>(losses + sequences, 1, 1), matrix_view<S>(c.auxiliary_loss, 1, 1));
          }
        }
      });
      c.device.group_pairs(static_cast<const std::int32_t*>(k.chosen), pairs, index{R.count}, k.offsets, k.place, k.source);
      if (c.observer != nullptr) {
        const auto size = static_cast<std::size_t>(pairs);
        const routing_event<P> event{w.place + bias_at, bias_row,         at.step,         at.steps, R.count,
                                     R.active,          {k.chosen, size}, {k.gates, size}, c.layout};
        if (std::int32_t* const room = c.observer->room_for_choices(event)) {
          c.device.copy(matrix_view<const std::int32_t>(k.chosen, 1, pairs), matrix_view<std::int32_t>(room, 1, pairs));
        } else {
          c.device.finish();  // observers read on the host
          c.observer->routed(event);
        }
      }
    } else {
      (void)c, (void)w, (void)x, (void)t;
    }
  }

  /// From the gradient of the gates (tokens, active). dx and dw accumulate.
  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t, const statistic_t<P>* d_gates,
                       rows<activation_t<P>, Width> dx) {
    if constexpr (routes) {
      using T = activation_t<P>;
      using S = statistic_t<P>;
      frame f(c.scratch);
      auto d_q = c.scratch.template take_rows<T, query_width>(dx.count);
      const routing_choice<P>& k = t.choice;
      each_chunk(dx.count, [&](index first, index n) {
        frame g(c.scratch);
        const index at = first * R.active;
        const matrix_view<S> d_scores(c.scratch.template take<S>(n * R.count), n, R.count);
        c.device.route_backward(static_cast<const S*>(k.logits + at), static_cast<const S*>(k.gates + at),
                                static_cast<const std::int32_t*>(k.chosen + at), d_gates + at, scale(), R.active, d_scores);
        if constexpr (has_losses) {
          frame h(c.scratch);
          const matrix_view<S> scores(c.scratch.template take<S>(n * R.count), n, R.count);
          c.device.product(queries(t, first, n), keys(w), scores, false);
          c.device.router_loss_backward(matrix_view<const S>(scores), scale(), static_cast<const std::int32_t*>(k.chosen),
                                        R.active, c.layout, loss_weights, c.loss_scale, d_scores);
        }
        const matrix_view<const T> d = in_activations(c, d_scores);
        c.device.product_weight_gradient(d, queries(t, first, n),
                                         matrix_view<gradient_t<P>>(dw + keys_at, R.count, query_width));
        c.device.product_input_gradient(d, keys(w), d_q.view().slice(first, n), false);
      });
      detail::turn_by_depth<query_width>(c, R.encoding, R.base, d_q.view(), true);
      query::backward(c, w, dw, t.in, rows<const T, query_width>(d_q), dx);
    } else {
      (void)c, (void)w, (void)dw, (void)t, (void)d_gates, (void)dx;
    }
  }

  /// Room for the gradient of the gates, zeroed; none where nothing is routed.
  template <class B, class P>
  static statistic_t<P>* open_gate_gradient(context<B, P>& c, index tokens) {
    if constexpr (routes) {
      auto* d = c.scratch.template take<statistic_t<P>>(tokens * R.active);
      c.device.fill(matrix_view<statistic_t<P>>(d, tokens, R.active), statistic_t<P>(0));
      return d;
    } else {
      return nullptr;
    }
  }

 private:
  // One row of the selection bias, and gradients of scores, in the scalars of those that read them: where these differ, in scratch.
  template <class B, class P>
  static const statistic_t<P>* in_statistics(context<B, P>& c, const parameter_t<P>* bias) {
    if constexpr (std::is_same_v<parameter_t<P>, statistic_t<P>>) {
      return bias;
    } else {
      auto* const wide = c.scratch.template take<statistic_t<P>>(R.count);
      c.device.copy(matrix_view<const parameter_t<P>>(bias, 1, R.count), matrix_view<statistic_t<P>>(wide, 1, R.count));
      return wide;
    }
  }
  template <class B, class P>
  static matrix_view<const activation_t<P>> in_activations(context<B, P>& c, matrix_view<statistic_t<P>> scores) {
    using T = activation_t<P>;
    if constexpr (std::is_same_v<T, statistic_t<P>>) {
      return scores;
    } else {
      const matrix_view<T> rounded(c.scratch.template take<T>(scores.size()), scores.rows, scores.cols);
      c.device.copy(matrix_view<const statistic_t<P>>(scores), rounded);
      return rounded;
    }
  }

  static double scale() { return 1 / std::sqrt(static_cast<double>(query_width)); }
  template <class P>
  static matrix_view<const activation_t<P>> queries(const tape<P>& t, index first, index n) {
    return matrix_view<const activation_t<P>>(t.q.view()).slice(first, n);
  }
  template <class B, class P>
  static auto keys(weights<B, P> w) {
    return (w + keys_at).matrix(R.count, query_width);
  }
  template <class Run>
  static void each_chunk(index tokens, Run run) {
    for (index first = 0; first < tokens; first += chunk) run(first, (std::min)(chunk, tokens - first));
  }
};

GYRE_END
