// Backend `dry`: runs the same code as a real backend, touches no memory, and keeps the books. With counting arenas it tells
// exactly what a pass will need.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <gyre/core/context.hpp>
#include <gyre/ops/operations.hpp>
#include <gyre/ops/routing.hpp>
#include <gyre/ops/sampling.hpp>
#include <gyre/ops/shapes.hpp>
#include <gyre/ops/updates.hpp>

GYRE_BEGIN

/// What operations cost. FLOPs are 2 x multiply-adds of products and of causal scores and values; elementwise work counts one
/// FLOP for each element read and is kept apart. Bytes are the operands read and written once each.
struct operation_cost {
  double product_flops = 0, elementwise_flops = 0, bytes = 0;
  index calls = 0;
  operation_cost& operator+=(const operation_cost& o) {
    product_flops += o.product_flops, elementwise_flops += o.elementwise_flops, bytes += o.bytes, calls += o.calls;
    return *this;
  }
};

/// Plans for backend `Of`: workspaces are those that Of asks for.
template <class Of>
struct dry {
  static constexpr bool plans_only = true;  // what it computes must not be read

  template <class T>
  struct prepared {};

  std::array<operation_cost, static_cast<std::size_t>(operation::count)> costs{};

  std::vector<index> cache_blocks;  // widths of what cache_append wrote, in order: a layer's keys, then its values

  operation_cost total() const {
    operation_cost sum;
    for (const operation_cost& c : costs) sum += c;
    return sum;
  }
  void finish() {}

  static index rms_norm_backward_workspace(index rows, index cols) { return Of::rms_norm_backward_workspace(rows, cols); }
  static index column_sum_workspace(index rows, index cols) { return Of::column_sum_workspace(rows, cols); }
  static index attention_backward_workspace(index rows, attention_shape shape) {
    return Of::attention_backward_workspace(rows, shape);
  }

  template <class T, class U>
  void fill(matrix_view<T> y, U) {
    touch<T>(operation::fill, 0, y.size());
  }
  template <class X, class T>
  void copy(matrix_view<const X>, matrix_view<T> y) {
    book(operation::copy, 0, 0, static_cast<double>(y.size()) * (sizeof(X) + sizeof(T)));
  }
  template <class T>
  void add(matrix_view<const T>, matrix_view<T> y) {
    touch<T>(operation::add, y.size(), 3 * y.size());
  }
  static index add_scaled_backward_workspace(index rows) { return Of::add_scaled_backward_workspace(rows); }
  template <class T>
  void add_scaled(matrix_view<const T> x, const T*, matrix_view<T>) {
    touch<T>(operation::add_scaled, 2 * x.size(), 3 * x.size());
  }
  template <class T, class G>
  void add_scaled_backward(matrix_view<const T> x, const T*, matrix_view<const T>, matrix_view<T>, G*, G*) {
    touch<T>(operation::add_scaled_backward, 3 * x.size(), 4 * x.size());
  }
  template <class T>
  void gather(matrix_view<const T>, std::span<const index>, matrix_view<T> y) {
    touch<T>(operation::gather, 0, 2 * y.size());
  }
  template <class T>
  void embed(matrix_view<const T>, std::span<const token>, double, matrix_view<T> y) {
    touch<T>(operation::embed, y.size(), 2 * y.size());
  }
  template <class T, class G>
  void embed_backward(matrix_view<const T> dy, std::span<const token>, double, matrix_view<G>) {
    touch<T>(operation::embed_backward, dy.size(), 3 * dy.size());
  }
  template <class T, class S>
  void rms_norm(matrix_view<const T> x, const T*, double, matrix_view<T>, S*) {
    touch<T>(operation::rms_norm, x.size(), 2 * x.size());
  }
  template <class T, class S>
  void add_rms_norm(matrix_view<const T> x, matrix_view<const T>, const T*, double, matrix_view<T>, matrix_view<T>, S*) {
    touch<T>(operation::add_rms_norm, 2 * x.size(), 4 * x.size());
  }
  template <class T, class S, class G>
  void rms_norm_backward(matrix_view<const T> x, const T*, const S*, matrix_view<const T>, matrix_view<T>, G*, G*) {
    touch<T>(operation::rms_norm_backward, 3 * x.size(), 4 * x.size());
  }
  template <class T, class Prepared, class Y>
  void product(matrix_view<const T> x, weight_matrix<T, Prepared> w, matrix_view<Y>, bool) {
    multiply<T>(operation::product, x.rows, w.raw.rows, w.raw.cols);
  }
  template <class T, class Prepared>
  void product_input_gradient(matrix_view<const T> dy, weight_matrix<T, Prepared> w, matrix_view<T>, bool) {
    multiply<T>(operation::product_input_gradient, dy.rows, w.raw.rows, w.raw.cols);
  }
  template <class T, class G>
  void product_weight_gradient(matrix_view<const T> dy, matrix_view<const T> x, matrix_view<G>) {
    multiply<T>(operation::product_weight_gradient, dy.rows, dy.cols, x.cols);
  }
  template <class T, class Prepared>
  void grouped_product(matrix_view<const T> x, weight_matrix<T, Prepared> w, row_groups groups, matrix_view<T>, bool) {
    multiply<T>(operation::grouped_product, x.rows, w.raw.rows, w.raw.cols, groups);
  }
  template <class T, class Prepared>
  void grouped_product_input_gradient(matrix_view<const T> dy, weight_matrix<T, Prepared> w, row_groups groups, matrix_view<T>,
                                      bool) {
    multiply<T>(operation::grouped_product_input_gradient, dy.rows, w.raw.rows, w.raw.cols, groups);
  }
  template <class T, class G>
  void grouped_product_weight_gradient(matrix_view<const T> dy, matrix_view<const T> x, row_groups groups, matrix_view<G>) {
    multiply<T>(operation::grouped_product_weight_gradient, dy.rows, dy.cols, x.cols, groups);
  }
  template <class T>
  void gated_silu(matrix_view<const T> h, matrix_view<T> a) {
    touch<T>(operation::gated_silu, h.size(), h.size() + a.size());
  }
  template <class T>
  void gated_silu_backward(matrix_view<const T> h, matrix_view<const T> da, matrix_view<T>) {
    touch<T>(operation::gated_silu_backward, h.size() + da.size(), 2 * h.size() + da.size());
  }
  template <class T, class S>
  void rotary(matrix_view<T> x, const std::type_identity_t<T>*, std::span<const std::int32_t>, const S*, rotary_shape) {
    touch<T>(operation::rotary, x.size(), 2 * x.size());
  }
  template <class T, class S>
  void rotary_backward(matrix_view<T> dx, std::span<const std::int32_t>, const S*, rotary_shape) {
    touch<T>(operation::rotary_backward, dx.size(), 2 * dx.size());
  }
  template <class T, class G>
  void column_sum(matrix_view<const T> x, G*, G*) {
    touch<T>(operation::column_sum, x.size(), x.size());
  }
  template <class T, class S>
  void attention(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, const batch_layout& layout,
                 attention_shape shape, matrix_view<T> o, S*) {
    attend<T>(operation::attention, 2, layout, shape, q.size() + k.size() + v.size() + o.size());
  }
  /// Scores again, then the gradients of values, probabilities, queries and keys: five products where forward has two.
  template <class T, class S>
  void attention_backward(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, matrix_view<const T> o,
                          const S*, matrix_view<const T>, const batch_layout& layout, attention_shape shape, matrix_view<T>,
                          matrix_view<T>, matrix_view<T>, S*) {
    attend<T>(operation::attention_backward, 5, layout, shape, 2 * (q.size() + k.size() + v.size() + o.size()));
  }
  template <class T>
  void cache_append(matrix_view<const T> k, matrix_view<const T> v, const batch_layout&, std::span<const cache_lane<T>>,
                    index) {
    touch<T>(operation::cache_append, 0, 2 * (k.size() + v.size()));
    cache_blocks.push_back(k.cols), cache_blocks.push_back(v.cols);
  }
  template <class T>
  void cached_attention(matrix_view<const T> q, const batch_layout& layout, std::span<const cache_lane<T>>, index,
                        attention_shape shape, int, matrix_view<T> o) {
    index read = 0;
    for (const sequence_span& s : layout.sequences()) read += 2 * (s.past + s.count) * shape.kv_heads * shape.width;
    attend<T>(operation::cached_attention, 2, layout, shape, q.size() + o.size() + read);
  }
  template <class T>
  void cache_extend(const batch_layout& layout, std::span<const cache_lane<T>>, std::span<const std::int32_t> copies, index,
                    std::span<const index> blocks, index) {
    index width = 0, moved = 0;
    for (const index block : blocks) width += block;
    std::size_t number = 0;
    for (const sequence_span& s : layout.sequences()) moved += s.count * width * (1 + copies[number++]);
    touch<T>(operation::cache_extend, 0, moved);
  }
  template <class T, class S>
  void rotate(matrix_view<T> x, const S*, rotary_shape, bool) {
    touch<T>(operation::rotate, x.size(), 2 * x.size());
  }
  template <class T, class S>
  void depth_attention(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, attention_shape shape,
                       matrix_view<T> o, S*) {
    read_slots<T>(operation::depth_attention, 2, k.rows, shape, q.size() + k.size() + v.size() + o.size());
  }
  template <class T, class S>
  void depth_attention_backward(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, matrix_view<const T> o,
                                const S*, matrix_view<const T>, attention_shape shape, matrix_view<T>, matrix_view<T>,
                                matrix_view<T>) {
    read_slots<T>(operation::depth_attention_backward, 5, k.rows, shape, 2 * (q.size() + o.size()) + 3 * (k.size() + v.size()));
  }
  template <class T, class S>
  void route(matrix_view<const T> scores, const std::type_identity_t<T>*, double, index active, std::int32_t*, S*, S*) {
    move_pairs<T, S>(operation::route, scores.size(), scores.size(), scores.rows * active, 1, 2);
  }
  template <class T, class S>
  void route_backward(const S*, const S*, const std::int32_t*, const S*, double, index active, matrix_view<T> d_scores) {
    const index pairs = d_scores.rows * active;
    move_pairs<T, S>(operation::route_backward, 3 * pairs, d_scores.size(), pairs, 1, 3);
  }
  void group_pairs(const std::int32_t*, index pairs, index experts, std::int32_t*, std::int32_t*, std::int32_t*) {
    touch<std::int32_t>(operation::group_pairs, pairs, 3 * pairs + experts + 1);
  }
  template <class T>
  void spread(matrix_view<const T>, const std::int32_t*, index, matrix_view<T> y) {
    move_pairs<T, T>(operation::spread, 0, 2 * y.size(), y.rows, 1, 0);
  }
  template <class T, class S>
  void collect(matrix_view<const T> y, const std::int32_t*, const S*, index, matrix_view<T> x) {
    move_pairs<T, S>(operation::collect, y.size(), y.size() + 2 * x.size(), y.rows, 1, 1);
  }
  template <class T, class S>
  void collect_backward(matrix_view<const T> dx, matrix_view<const T> y, const std::int32_t*, const S*, index, matrix_view<T>,
                        S*) {
    move_pairs<T, S>(operation::collect_backward, 2 * y.size(), dx.size() + 2 * y.size(), y.rows, 1, 3);
  }
  template <class T, class S>
  void router_loss(matrix_view<const T> scores, double, const std::int32_t*, index active, const batch_layout&,
                   router_loss_weights, S*) {
    move_pairs<T, S>(operation::router_loss, scores.size(), scores.size(), scores.rows * active, 1, 0);
  }
  template <class T, class S>
  void router_loss_backward(matrix_view<const T> scores, double, const std::int32_t*, index active, const batch_layout&,
                            router_loss_weights, S, matrix_view<T>) {
    move_pairs<T, S>(operation::router_loss_backward, scores.size(), 3 * scores.size(), scores.rows * active, 1, 0);
  }
  template <class T, class S>
  void row_change(matrix_view<const T> x, matrix_view<const T>, S*) {
    touch<T>(operation::row_change, 2 * x.size(), 2 * x.size());
  }
  template <class S>
  void sample(matrix_view<const S> logits, std::span<const sampling_row>, std::span<const token>, token*, double*) {
    touch<S>(operation::sample, logits.size(), logits.size());
  }
  template <class T, class S>
  void cross_entropy(matrix_view<T> logits, std::span<const token>, std::type_identity_t<S>, S*, bool gradient) {
    touch<T>(operation::cross_entropy, logits.size(), (gradient ? 2 : 1) * logits.size());
  }
  template <class S>
  void sum(const S*, index count, S*) {
    touch<S>(operation::sum, count, count);
  }
  template <class T>
  void random_normal(matrix_view<T> y, const batch_layout&, state_key, double, bool) {
    touch<T>(operation::random_normal, y.size(), y.size());
  }
  template <class T>
  void standardise(matrix_view<T> y) {
    touch<T>(operation::standardise, y.size(), 2 * y.size());
  }
  template <class T>
  void squared_norm(const T*, index count, double*) {
    touch<T>(operation::squared_norm, count, count);
  }
  template <class T>
  void unit(const T*, const double*, T*, index count) {
    touch<T>(operation::unit, count, 2 * count);
  }
  template <class T>
  void combine(std::type_identity_t<T>, const T*, std::type_identity_t<T>, T*, index count) {
    touch<T>(operation::combine, 2 * count, 3 * count);
  }
  template <class T>
  void adamw_update(T*, const T*, T*, T*, index count, const adamw_numbers&) {
    touch<T>(operation::adamw_update, 4 * count, 7 * count);
  }
  template <class T>
  void clipped_atan2_update(T*, const T*, T*, T*, index count, const clipped_atan2_numbers&) {
    touch<T>(operation::clipped_atan2_update, 4 * count, 9 * count);  // the mean of g^2 / v stands between two passes
  }

 private:
  void book(operation what, double products, double elementwise, double bytes) {
    costs[static_cast<std::size_t>(what)] += {products, elementwise, bytes, 1};
  }
  template <class T>
  void touch(operation what, index elements, index moved) {
    book(what, 0, static_cast<double>(elements), static_cast<double>(moved) * sizeof(T));
  }
  template <class T>
  void multiply(operation what, index rows, index out, index in, index matrices = 1) {
    const double r = static_cast<double>(rows), o = static_cast<double>(out), i = static_cast<double>(in);
    book(what, 2 * r * o * i, 0, (r * o + r * i + static_cast<double>(matrices) * o * i) * sizeof(T));
  }
  /// Which groups will have rows is not known: as many matrices as could be used.
  template <class T>
  void multiply(operation what, index rows, index out, index in, row_groups groups) {
    multiply<T>(what, rows, out, in, (std::min)(rows, groups.count));
  }
  // `moved` scalars of rows, and of each pair so many numbers of an expert or place and so many statistic scalars.
  template <class T, class S>
  void move_pairs(operation what, index elements, index moved, index pairs, int numbers, int statistics) {
    const double of_pair = numbers * double{sizeof(std::int32_t)} + statistics * double{sizeof(S)};
    book(what, 0, static_cast<double>(elements), static_cast<double>(moved) * sizeof(T) + static_cast<double>(pairs) * of_pair);
  }
  template <class T>
  void read_slots(operation what, double products, index pairs, attention_shape shape, index moved) {
    const double scores = static_cast<double>(pairs) * static_cast<double>(shape.heads);
    book(what, products * 2 * scores * static_cast<double>(shape.width), scores, static_cast<double>(moved) * sizeof(T));
  }
  template <class T>
  void attend(operation what, double products, const batch_layout& layout, attention_shape shape, index moved) {
    double pairs = 0;  // query, key
    for (const sequence_span& s : layout.sequences()) {
      const double n = static_cast<double>(s.count), past = static_cast<double>(s.past);
      pairs += n * past + n * (n + 1) / 2;
    }
    const double heads = static_cast<double>(shape.heads);
    book(what, products * 2 * pairs * heads * static_cast<double>(shape.width), pairs * heads,
         static_cast<double>(moved) * sizeof(T));
  }
};

GYRE_END
