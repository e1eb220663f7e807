// The contract between layers and backends: every operation's signature, meaning, aliasing and accumulation. Read this first
// to write a backend; backend/reference is the contract in plain loops, and what every other backend is compared with.
//
// Conventions
//   T           activation and parameter scalar. S: statistic scalar (norm factors, log-sum-exp, losses). G: scalar of gradients of
//               parameters. V<T>: matrix_view<T>. S and G are T, or float where T is bfloat16.
//   rounding    sums and functions are computed in compute_t<T> (float for bfloat16), and what an operation stores is rounded to T
//               once, however many terms it adds, also where it accumulates. Weights of sequence attention may be, see there.
//   assigns     the output's old content is not read. accumulates: the result is added to what is there.
//   aliasing    outputs must not overlap inputs unless an operation says "in place".
//   determinism the result does not depend on the number of threads, nor a row's result on the rows around it, except that sums
//               over rows (parameter gradients) depend on the number of rows.
//   sizes       zero rows are legal everywhere. Views may be strided; pointers to vectors are contiguous.
//   order       calls act in their order, but may return before their work is done: the host waits by finish(). What lies in
//               memory of the host (spans, layouts, lanes with their steps, angles) is read before a call returns. No call
//               returns a number: what operations work out lies in the backend's memory, numbers of double too.
//   workspace   scalars that the caller takes from its scratch arena: the static function `<operation>_workspace` of the
//               backend says how many, so that a dry run plans them.
//   tolerance   of a backend in precision eps against the reference in exact arithmetic, per element:
//               sums of n terms c * n * eps * sum|terms| with c = 2 (products, norms, attention, column sums); elementwise
//               functions 8 eps relative to the largest intermediate.
//
// Memory
//   std::byte* allocate(std::size_t bytes)                       64-byte aligned; std::bad_alloc or gyre::error when exhausted
//   void deallocate(std::byte*, std::size_t bytes) noexcept      what has been called may still use it: the backend sees to that
//   void finish()                                                waits for everything called on this object and its copies;
//                                                                after it the host may read and write the backend's memory
//   prepared<T>                                                  what the backend derives from weights (packed copies)
//     prepared(B&, const T* flat, span<const tensor_entry>, bool backward)   plans and allocates; `backward`: gradients follow
//     void refresh(B&)                                           recomputes after the weights changed
//
// Elementwise
//   fill(V<T> y, T value)                                        assigns
//   copy(V<const X> x, V<T> y)                                   assigns; X and T may be T and S: widens or rounds
//   add(V<const T> x, V<T> y)                                    y += x
//   add_scaled(V<const T> x, const T* factor, V<T> y)            y += factor[0] x
//   add_scaled_backward(V<const T> x, const T* factor, V<const T> dy, V<T> dx, G* dfactor, G* workspace)
//                                                                dx += factor[0] dy, dfactor[0] += sum of x dy: accumulate
//   gather(V<const T> x, span<const index> from, V<T> y)         y[i] = x[from[i]]
//
// Embedding
//   embed(V<const T> table, span<const token> ids, double scale, V<T> y)             y[i] = scale * table[ids[i]]
//   embed_backward(V<const T> dy, span<const token> ids, double scale, V<G> dtable)  accumulates, in the order of the rows
//
// Norms: y = x * rstd * gain, rstd = 1 / sqrt(mean(x^2) + eps) in S; x * rstd is rounded to T before the gain multiplies it
//   rms_norm(V<const T> x, const T* gain, double eps, V<T> y, S* rstd)               gain null: none; y may be x; rstd (rows)
//   add_rms_norm(V<const T> x, V<const T> f, const T* gain, double eps, V<T> sum, V<T> y, S* rstd)
//                                                                sum = x + f, y = norm of sum; sum may be x or f
//   rms_norm_backward(V<const T> x, const T* gain, const S* rstd, V<const T> dy, V<T> dx, G* dgain, G* workspace)
//                                                                dx accumulates, dgain (or null) accumulates
//
// Products with weights w (out, in)
//   product(V<const T> x, weight_matrix w, V<Y> y, bool accumulate)                  y (+)= x w^T; Y is T or S
//   product_input_gradient(V<const T> dy, weight_matrix w, V<T> dx, bool accumulate) dx (+)= dy w
//   product_weight_gradient(V<const T> dy, V<const T> x, V<G> dw)                    dw += dy^T x
// The same with a matrix for each of several groups of consecutive rows (row_groups); w and dw are group 0's. A row's result is
// that of the row in a product with its group's matrix. Groups without rows cost nothing: their matrices are neither read nor
// written.
//   grouped_product(V<const T> x, weight_matrix w, row_groups, V<T> y, bool accumulate)
//   grouped_product_input_gradient(V<const T> dy, weight_matrix w, row_groups, V<T> dx, bool accumulate)
//   grouped_product_weight_gradient(V<const T> dy, V<const T> x, row_groups, V<G> dw)    accumulates; matrices must not overlap
//
// Gated MLP: h (rows, 2 m) = [gate | up]
//   gated_silu(V<const T> h, V<T> a)                             a = silu(gate) * up
//   gated_silu_backward(V<const T> h, V<const T> da, V<T> dh)    assigns dh
//
// Rotary encoding of heads * width columns; table (positions, width / 2, 2): cosine, sine
//   rotary(V<T> x, const T* bias, span<const int32> positions, const S* table, rotary_shape)   in place: x = R(pos) (x + bias)
//   rotary_backward(V<T> dx, span<const int32> positions, const S* table, rotary_shape)        in place: dx = R(pos)^T dx
//   column_sum(V<const T> x, G* sum, G* workspace)               accumulates: sum[j] += sum_i x[i][j]
//
// Sequence attention, causal within each sequence of the layout; q (rows, heads * width), k and v (rows, kv_heads * width)
// Causal to the bit: nothing of a later row changes the result of an earlier one, not even numbers that are not finite. So with
// gradients: dq of a row depends on the rows up to it, dk and dv of a row on it and on the queries (q, o, lse, d_o) from it on.
// Where T is bfloat16 a weight may be rounded to T before it multiplies a value or d_o, and the gradient of a score before it
// multiplies a key or query, as tensor cores take them. Scores, log-sum-exp, the sum that weights are divided by, and all sums stay
// in compute_t<T>.
//   attention(q, k, v, const batch_layout&, attention_shape, V<T> o, S* lse)         lse (rows, heads): log-sum-exp of the scores
//   attention_backward(q, k, v, V<const T> o, const S* lse, V<const T> d_o, const batch_layout&, attention_shape,
//                      V<T> dq, V<T> dk, V<T> dv, S* workspace)                      assigns dq, dk, dv
//   cache_append(V<const T> k, V<const T> v, const batch_layout&, span<const cache_lane<T>>, index cursor)
//                                                                writes positions past .. past + count - 1 of every lane
//   cached_attention(V<const T> q, const batch_layout&, span<const cache_lane<T>>, index cursor, attention_shape, int step,
//                    V<T> o)
//                                                                keys and values from the lanes, mask aligned bottom-right; a
//                                                                past token that ran no more than `step` steps is left out
//                                                                where the lane knows the steps run
//   cache_extend(const batch_layout&, span<const cache_lane<T>>, span<const int32> copies, index cursor,
//                span<const index> blocks, index stride)
//                                                                for the positions past .. past + count - 1 of lane i: repeats
//                                                                the consecutive blocks (keys or values of a layer, `blocks`
//                                                                scalars a token each) that begin at `cursor` at the cursors
//                                                                cursor + stride * 1 .. copies[i]
//
// Depth: every row has slots, one for each step so far; slot j of keys is rows j * tokens .. of k (slots * tokens, kv_heads * width),
// of values likewise, and tokens is the rows of q. Rows do not see each other.
//   rotate(V<T> x, const S* angles, rotary_shape, bool back)     in place, every row alike; angles (width / 2, 2): cosine, sine, in
//                                                                memory of the host; back: with the transposed rotation
//   depth_attention(q, k, v, attention_shape, V<T> o, S* lse)    softmax over all slots that k has; without slots o and lse are 0
//   depth_attention_backward(q, k, v, V<const T> o, const S* lse, V<const T> d_o, attention_shape, V<T> dq, V<T> dk, V<T> dv)
//                                                                assigns dq; dk and dv (as k and v) accumulate
//
// Routing of rows to experts. A pair is one row with one of its `active` experts, number p = row * active + slot; chosen,
// logits, gates and place have one entry a pair. Which experts a row goes to has no gradient.
//   route(V<const S> scores, const S* bias, double scale, index active, int32* chosen, S* logits, S* gates)
//                                                                x = scale * scores (rows, E). A row chooses the `active` experts
//                                                                with the largest x + bias (null: no bias); ties go to the lower
//                                                                index, NaN counts as -infinity; its slots are in ascending order
//                                                                of the experts. logits: the kept x. gates: exp(logsigmoid(x) -
//                                                                logsumexp over the kept logsigmoid(x)), without the bias;
//                                                                sigmoid(x) where active is 1 of several, 1 where E is 1. Sums
//                                                                of a row's gates are 1 however negative its logits; a NaN among
//                                                                the kept makes the row's gates NaN
//   route_backward(const S* logits, const S* gates, const int32* chosen, const S* d_gates, double scale, index active,
//                  V<S> d_scores)                                assigns, 0 where not chosen
//   group_pairs(const int32* chosen, index pairs, index experts, int32* offsets, int32* place, int32* source)
//                                                                sorts pairs by expert, stably: pair p goes to row place[p],
//                                                                source[place[p]] = p, expert e has the rows offsets[e] ..
//                                                                offsets[e + 1] - 1; offsets (experts + 1)
//   spread(V<const T> x, const int32* source, index active, V<T> y)                  y[i] = x[source[i] / active]
//   collect(V<const T> y, const int32* place, const S* gates, index active, V<T> x)
//                                                                x[i] += sum over its slots, in their order, of gates[p] *
//                                                                y[place[p]]; gates null: 1, the backward of spread
//   collect_backward(V<const T> dx, V<const T> y, const int32* place, const S* gates, index active, V<T> dy, S* d_gates)
//                                                                dy[place[p]] = gates[p] dx[row] assigns and may be y;
//                                                                d_gates[p] += <dx[row], y[place[p]]>
//   router_loss(V<const S> scores, double scale, const int32* chosen, index active, const batch_layout&,
//               router_loss_weights, S* losses)                  losses (sequences): tokens * balance * sum_e f_e P_e + z * sum
//                                                                over tokens of logsumexp(x)^2, with f_e = E / (active * tokens)
//                                                                * (rows that chose e), P_e = the sequence's mean of sigmoid(x)_e
//                                                                / sum sigmoid(x). Sums over tokens: divide by those of the
//                                                                batch for its mean
//   router_loss_backward(V<const S> scores, double scale, const int32* chosen, index active, const batch_layout&,
//                        router_loss_weights, S factor, V<S> d_scores)               accumulates factor * gradient, f_e constant
//
// Recurrence
//   row_change(V<const T> x, V<const T> before, S* change)       change (rows, 2): ||x - before||, ||x|| of every row
//
// Choice of tokens, in double
//   sample(V<const S> logits, span<const sampling_row> rows, span<const token> histories, token* chosen, double* log_probabilities)
//                                                                a token for each row of logits, by the row's rules (`sampling`
//                                                                lists the steps), history and uniform number, and its logarithmic
//                                                                probability under the softmax of the logits as they came, 0 where
//                                                                the row does not want it. chosen is -1, and the probability 0,
//                                                                where logits have no softmax: one is NaN or +inf, or all are -inf.
//                                                                Rules out of range and tokens of a history outside the vocabulary
//                                                                are refused. Which of two tokens it is may differ between backends
//                                                                where rounding decides: where a cut or the uniform number lies as
//                                                                near to a border as the probabilities' tolerance
//
// Loss
//   cross_entropy(V<T> logits, span<const token> targets, S scale, S* losses, bool gradient)
//                                                                losses[i] = logsumexp(logits[i]) - logits[i][target], unscaled,
//                                                                0 where target < 0; with `gradient` logits become
//                                                                scale * (softmax - onehot), zero where target < 0
//   sum(const S* x, index count, S* total)                       assigns total[0], in a fixed order
//
// Initial states: every value from its own counter (seed, step, sequence key, position, feature)
//   random_normal(V<T> y, const batch_layout&, state_key, double sigma, bool truncated)   truncated: cut at 3 sigma
//   standardise(V<T> y)                                          in place: zero mean, unit variance per row
//
// Updates of parameters, on flat vectors of `count` scalars (training only; concept updating_backend). T is the scalar of gradients
// and master weights: not bfloat16.
//   squared_norm(const T* x, index count, double* squares)       assigns squares[0]: the sum of squares in double, in a fixed order
//   unit(const T* x, const double* squares, T* y, index count)   y = x / sqrt(squares[0]) in double, rounded once; 0 where squares[0]
//                                                                is; assigns, y may be x
//   combine(T a, const T* x, T b, T* y, index count)             y = a x + b y; with b = 0 assigns; y may be x
//   adamw_update(T* w, const T* g, T* m, T* v, index count, const adamw_numbers&)        m, v and w in place
//   clipped_atan2_update(T* w, const T* g, T* m, T* v, index count, const clipped_atan2_numbers&)    m, v and w in place; the mean
//                                                                of g^2 / v (scaled g, new v) in double, in a fixed order
#pragma once

#include <concepts>
#include <span>

#include <gyre/core/bfloat16.hpp>
#include <gyre/core/context.hpp>
#include <gyre/ops/routing.hpp>
#include <gyre/ops/sampling.hpp>
#include <gyre/ops/shapes.hpp>
#include <gyre/ops/updates.hpp>

GYRE_BEGIN

namespace detail {

/// The part of the contract that is checked for one set of scalars; the full list stands above.
template <class B, class T, class S, class G>
concept operations = requires(B& b, matrix_view<T> y, matrix_view<const T> x, const T* q, S* p, const S* o, G* g, real_t<S> s,
                              index n, matrix_view<S> z, matrix_view<const S> u, matrix_view<G> d, std::span<const token> ids,
                              const batch_layout& rows, weight_matrix<T, typename B::template prepared<T>> w,
                              std::span<const index> from, std::span<const std::int32_t> positions,
                              std::span<const cache_lane<T>> lanes, attention_shape a, rotary_shape r, state_key key,
                              std::span<const index> blocks, row_groups groups, std::int32_t* to, const std::int32_t* at,
                              router_loss_weights l, std::span<const sampling_row> choices, double* numbers) {
  b.fill(y, T(s));
  b.copy(x, y);
  b.copy(x, z);
  b.copy(u, y);
  b.add(x, y);
  b.add_scaled(x, q, y);
  b.add_scaled_backward(x, q, x, y, g, g);
  b.gather(x, from, y);
  b.embed(x, ids, 1.0, y);
  b.embed_backward(x, ids, 1.0, d);
  b.rms_norm(x, q, 1.0, y, p);
  b.add_rms_norm(x, x, q, 1.0, y, y, p);
  b.rms_norm_backward(x, q, o, x, y, g, g);
  b.product(x, w, y, true);
  b.product(x, w, z, true);
  b.product_input_gradient(x, w, y, true);
  b.product_weight_gradient(x, x, d);
  b.grouped_product(x, w, groups, y, true);
  b.grouped_product_input_gradient(x, w, groups, y, true);
  b.grouped_product_weight_gradient(x, x, groups, d);
  b.gated_silu(x, y);
  b.gated_silu_backward(x, x, y);
  b.rotary(y, q, positions, o, r);
  b.rotary_backward(y, positions, o, r);
  b.column_sum(x, g, g);
  b.attention(x, x, x, rows, a, y, p);
  b.attention_backward(x, x, x, x, o, x, rows, a, y, y, y, p);
  b.cache_append(x, x, rows, lanes, n);
  b.cached_attention(x, rows, lanes, n, a, 0, y);
  b.cache_extend(rows, lanes, positions, n, blocks, n);
  b.rotate(y, o, r, true);
  b.depth_attention(x, x, x, a, y, p);
  b.depth_attention_backward(x, x, x, x, o, x, a, y, y, y);
  b.route(u, o, 1.0, n, to, p, p);
  b.route_backward(o, o, at, o, 1.0, n, z);
  b.group_pairs(at, n, n, to, to, to);
  b.spread(x, at, n, y);
  b.collect(x, at, o, n, y);
  b.collect_backward(x, x, at, o, n, y, p);
  b.router_loss(u, 1.0, at, n, rows, l, p);
  b.router_loss_backward(u, 1.0, at, n, rows, l, s, z);
  b.row_change(x, x, p);
  b.sample(u, choices, ids, to, numbers);
  b.cross_entropy(y, ids, S(s), p, true);
  b.sum(o, n, p);
  b.random_normal(y, rows, key, 1.0, true);
  b.standardise(y);
  { B::add_scaled_backward_workspace(n) } -> std::convertible_to<index>;
  { B::rms_norm_backward_workspace(n, n) } -> std::convertible_to<index>;
  { B::column_sum_workspace(n, n) } -> std::convertible_to<index>;
  { B::attention_backward_workspace(n, a) } -> std::convertible_to<index>;
};

}  // namespace detail

/// An implementation of the contract. A backend is an object (a thread pool, a stream), never process-wide state.
template <class B>
concept backend = detail::operations<B, float, float, float> && detail::operations<B, double, double, double> &&
    requires(B& b, std::byte* p, std::size_t n) {
  { b.allocate(n) } -> std::same_as<std::byte*>;
  b.deallocate(p, n);
  b.finish();
};
/// A backend that also runs models of precision bf16_mixed.
template <class B>
concept mixed_backend = backend<B> && detail::operations<B, bfloat16, float, float>;

/// A backend that can also update parameters of type T: what a trainer needs beyond passes.
template <class B, class T>
concept updating_backend = requires(B& b, T* y, const T* x, index n, double* squares) {
  b.squared_norm(x, n, squares);
  b.unit(x, squares, y, n);
  b.combine(T(1), x, T(1), y, n);
  b.adamw_update(y, x, y, y, n, adamw_numbers{});
  b.clipped_atan2_update(y, x, y, y, n, clipped_atan2_numbers{});
};

GYRE_END
