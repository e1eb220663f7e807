// Backend `cpu`: the contract on the processor's vector units and a fixed set of threads.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <gyre/backend/cpu/aligned.hpp>
#include <gyre/backend/cpu/attention.hpp>
#include <gyre/backend/cpu/attention_backward.hpp>
#include <gyre/backend/cpu/cache.hpp>
#include <gyre/backend/cpu/depth.hpp>
#include <gyre/backend/cpu/elementwise.hpp>
#include <gyre/backend/cpu/grouped_product.hpp>
#include <gyre/backend/cpu/initial_states.hpp>
#include <gyre/backend/cpu/loss.hpp>
#include <gyre/backend/cpu/mixed.hpp>
#include <gyre/backend/cpu/norms.hpp>
#include <gyre/backend/cpu/pool.hpp>
#include <gyre/backend/cpu/prepared.hpp>
#include <gyre/backend/cpu/product.hpp>
#include <gyre/backend/cpu/rotary.hpp>
#include <gyre/backend/cpu/routing.hpp>
#include <gyre/backend/cpu/sampling.hpp>
#include <gyre/backend/cpu/updates.hpp>
#include <gyre/ops/contract.hpp>

GYRE_BEGIN

/// A handle to a thread pool, cheap to copy; copies share the threads, whose last owner ends them. For float, double and bf16.
///
/// Every result has the same bits for any number of threads. Calls from several user threads are safe and take turns.
class cpu : public detail::cpu_updates<cpu>, public detail::cpu_routing<cpu> {
 public:
  template <class T>
  using prepared = detail::packed_weights<T>;

  /// All cores.
  cpu() : cpu(thread_pool::default_threads()) {}
  /// `threads` threads, the caller's among them. Throws gyre::error below 1.
  explicit cpu(int threads) : pool_(start(threads)) {}

  int threads() const { return pool_->threads(); }
  thread_pool& pool() const { return *pool_; }

  std::byte* allocate(std::size_t bytes) { return detail::take_memory(bytes); }
  void deallocate(std::byte* memory, std::size_t bytes) noexcept { detail::give_memory_back(memory, bytes); }
  /// Calls return when their work is done.
  void finish() {}

  template <class T>
  void fill(matrix_view<T> y, std::type_identity_t<T> value) {
    detail::fill(*pool_, y, value);
  }
  template <class X, class T>
  void copy(matrix_view<const X> x, matrix_view<T> y) {
    detail::copy(*pool_, x, y);
  }
  template <class T>
  void add(matrix_view<const T> x, matrix_view<T> y) {
    detail::add(*pool_, x, y);
  }
  template <class T>
  void add_scaled(matrix_view<const T> x, const T* factor, matrix_view<T> y) {
    detail::add_scaled(*pool_, x, compute_t<T>(factor[0]), y);
  }
  static constexpr index add_scaled_backward_workspace(index rows) { return rows; }
  template <class T, class G>
  void add_scaled_backward(matrix_view<const T> x, const T* factor, matrix_view<const T> dy, matrix_view<T> dx, G* dfactor,
                           G* workspace) {
    add_scaled(dy, factor, dx);
    detail::row_dot_products(*pool_, x, dy, workspace);
    dfactor[0] += detail::sum_in_order(workspace, x.rows);
  }
  template <class T>
  void gather(matrix_view<const T> x, std::span<const index> from, matrix_view<T> y) {
    detail::gather(*pool_, x, from, y);
  }

  template <class T>
  void embed(matrix_view<const T> table, std::span<const token> ids, double scale, matrix_view<T> y) {
    detail::embed(*pool_, table, ids, scale, y);
  }
  template <class T, class G>
  void embed_backward(matrix_view<const T> dy, std::span<const token> ids, double scale, matrix_view<G> dtable) {
    detail::embed_backward(*pool_, dy, ids, scale, dtable);
  }

  template <class T, class S>
  void rms_norm(matrix_view<const T> x, const T* gain, double eps, matrix_view<T> y, S* rstd) {
    detail::rms_norm(*pool_, x, gain, eps, y, rstd);
  }
  template <class T, class S>
  void add_rms_norm(matrix_view<const T> x, matrix_view<const T> f, const T* gain, double eps, matrix_view<T> sum,
                    matrix_view<T> y, S* rstd) {
    detail::add_rms_norm(*pool_, x, f, gain, eps, sum, y, rstd);
  }
  static constexpr index rms_norm_backward_workspace(index rows, index cols) { return detail::partial_sums(rows) * cols; }
  template <class T, class S, class G>
  void rms_norm_backward(matrix_view<const T> x, const T* gain, const S* rstd, matrix_view<const T> dy, matrix_view<T> dx,
                         G* dgain, G* workspace) {
    detail::rms_norm_backward(*pool_, x, gain, rstd, dy, dx, dgain, workspace);
  }

  template <class T, class Y>
  void product(matrix_view<const T> x, weight_matrix<T, prepared<T>> w, matrix_view<Y> y, bool accumulate) {
    multiply(x, w.prepared != nullptr ? w.prepared->forward(*pool_, w.raw) : nullptr, w.raw, true, y, accumulate);
  }
  template <class T>
  void product_input_gradient(matrix_view<const T> dy, weight_matrix<T, prepared<T>> w, matrix_view<T> dx, bool accumulate) {
    multiply(dy, w.prepared != nullptr ? w.prepared->backward(*pool_, w.raw) : nullptr, w.raw, false, dx, accumulate);
  }
  template <class T, class G>
  void product_weight_gradient(matrix_view<const T> dy, matrix_view<const T> x, matrix_view<G> dw) {
    detail::multiply_transposed(*pool_, dw, dy, x);
  }

  template <class T>
  void grouped_product(matrix_view<const T> x, weight_matrix<T, prepared<T>> w, row_groups groups, matrix_view<T> y,
                       bool accumulate) {
    detail::check_product("grouped_product", y, x.rows, x.cols, w.raw.cols, w.raw.rows);
    if (!detail::grouped_multiply(*pool_, "grouped_product", y, x, w, groups, false, accumulate))
      detail::for_each_group(groups, [&](index first, index n, index g) {
        const weight_matrix<T, prepared<T>> own{detail::matrix_of_group(w.raw, groups, g), w.prepared};
        product(x.slice(first, n), own, y.slice(first, n), accumulate);
      });
  }
  template <class T>
  void grouped_product_input_gradient(matrix_view<const T> dy, weight_matrix<T, prepared<T>> w, row_groups groups,
                                      matrix_view<T> dx, bool accumulate) {
    detail::check_product("grouped_product_input_gradient", dx, dy.rows, dy.cols, w.raw.rows, w.raw.cols);
    if (!detail::grouped_multiply(*pool_, "grouped_product_input_gradient", dx, dy, w, groups, true, accumulate))
      detail::for_each_group(groups, [&](index first, index n, index g) {
        const weight_matrix<T, prepared<T>> own{detail::matrix_of_group(w.raw, groups, g), w.prepared};
        product_input_gradient(dy.slice(first, n), own, dx.slice(first, n), accumulate);
      });
  }
  template <class T, class G>
  void grouped_product_weight_gradient(matrix_view<const T> dy, matrix_view<const T> x, row_groups groups, matrix_view<G> dw) {
    detail::grouped_multiply_transposed(*pool_, dw, dy, x, groups);
  }

  template <class T>
  void gated_silu(matrix_view<const T> h, matrix_view<T> a) {
    detail::gated_silu(*pool_, h, a);
  }
  template <class T>
  void gated_silu_backward(matrix_view<const T> h, matrix_view<const T> da, matrix_view<T> dh) {
    detail::gated_silu_backward(*pool_, h, da, dh);
  }

  template <class T, class S>
  void rotary(matrix_view<T> x, const std::type_identity_t<T>* bias, std::span<const std::int32_t> positions, const S* table,
              rotary_shape shape) {
    detail::rotary(*pool_, x, bias, positions, table, shape, S(1));
  }
  template <class T, class S>
  void rotary_backward(matrix_view<T> dx, std::span<const std::int32_t> positions, const S* table, rotary_shape shape) {
    detail::rotary(*pool_, dx, static_cast<const T*>(nullptr), positions, table, shape, S(-1));
  }
  static constexpr index column_sum_workspace(index rows, index cols) { return detail::partial_sums(rows) * cols; }
  template <class T, class G>
  void column_sum(matrix_view<const T> x, G* sum, G* workspace) {
    detail::column_sum(*pool_, x, sum, workspace);
  }

  template <class T, class S>
  void attention(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, const batch_layout& layout,
                 attention_shape shape, matrix_view<T> o, S* lse) {
    if constexpr (is_compute_type<T>)
      detail::attend<T>(*pool_, q, {k, v, {}}, layout, shape, o, lse);
    else
      detail::attend(*pool_, q, k, v, layout, shape, o, lse);
  }
  static constexpr index attention_backward_workspace(index, attention_shape) { return 0; }
  template <class T, class S>
  void attention_backward(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, matrix_view<const T> o,
                          const S* lse, matrix_view<const T> d_o, const batch_layout& layout, attention_shape shape,
                          matrix_view<T> dq, matrix_view<T> dk, matrix_view<T> dv, S*) {
    if constexpr (is_compute_type<T>)
      detail::attention_backward<T>(*pool_, {q, k, v, o, lse, d_o, dq, dk, dv, shape}, layout);
    else
      detail::attention_backward(*pool_, {q, k, v, o, nullptr, d_o, dq, dk, dv, shape}, lse, layout);
  }
  template <class T>
  void cache_append(matrix_view<const T> k, matrix_view<const T> v, const batch_layout& layout,
                    std::span<const cache_lane<T>> lanes, index cursor) {
    detail::cache_append(*pool_, k, v, layout, lanes, cursor);
  }
  template <class T>
  void cached_attention(matrix_view<const T> q, const batch_layout& layout, std::span<const cache_lane<T>> lanes, index cursor,
                        attention_shape shape, int step, matrix_view<T> o) {
    if constexpr (is_compute_type<T>)
      detail::attend<T>(*pool_, q, {{}, {}, lanes, cursor, step}, layout, shape, o, nullptr);
    else
      detail::attend(*pool_, q, lanes, cursor, step, layout, shape, o);
  }

  template <class T>
  void cache_extend(const batch_layout& layout, std::span<const cache_lane<T>> lanes, std::span<const std::int32_t> copies,
                    index cursor, std::span<const index> blocks, index stride) {
    detail::cache_extend(*pool_, layout, lanes, copies, cursor, blocks, stride);
  }

  template <class T, class S>
  void rotate(matrix_view<T> x, const S* angles, rotary_shape shape, bool back) {
    detail::rotate(*pool_, x, angles, shape, back ? S(-1) : S(1));
  }
  template <class T, class S>
  void depth_attention(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, attention_shape shape,
                       matrix_view<T> o, S* lse) {
    detail::depth_attention(*pool_, q, k, v, shape, o, lse);
  }
  template <class T, class S>
  void depth_attention_backward(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, matrix_view<const T> o,
                                const S* lse, matrix_view<const T> d_o, attention_shape shape, matrix_view<T> dq,
                                matrix_view<T> dk, matrix_view<T> dv) {
    detail::depth_attention_backward(*pool_, q, k, v, o, lse, d_o, shape, dq, dk, dv);
  }

  template <class T, class S>
  void row_change(matrix_view<const T> x, matrix_view<const T> before, S* change) {
    detail::row_change(*pool_, x, before, change);
  }

  template <class S>
  void sample(matrix_view<const S> logits, std::span<const sampling_row> rows, std::span<const token> histories, token* chosen,
              double* log_probabilities) {
    detail::sample_rows(*pool_, logits, rows, histories, chosen, log_probabilities);
  }

  template <class T, class S>
  void cross_entropy(matrix_view<T> logits, std::span<const token> targets, std::type_identity_t<S> scale, S* losses,
                     bool gradient) {
    detail::cross_entropy(*pool_, logits, targets, scale, losses, gradient);
  }
  template <class T>
  void sum(const T* x, index count, T* total) {
    total[0] = detail::sum_in_order(x, count);
  }

  template <class T>
  void random_normal(matrix_view<T> y, const batch_layout& rows, state_key key, double sigma, bool truncated) {
    detail::random_normal(*pool_, y, rows, key, sigma, truncated);
  }
  template <class T>
  void standardise(matrix_view<T> y) {
    detail::standardise(*pool_, y);
  }

 private:
  template <class T>
  static constexpr bool is_compute_type = std::is_same_v<T, compute_t<T>>;
  static std::shared_ptr<thread_pool> start(int threads) {
    require(threads >= 1, "cpu: ", threads, " threads asked for; at least 1 is needed");
    return std::make_shared<thread_pool>(threads);
  }

  // y (+)= x w or x w^T. Weights that nobody packed beforehand are packed for this one product, in memory that the pool keeps.
  template <class T, class Y>
  void multiply(matrix_view<const T> x, const packed_matrix<compute_t<T>>* packed, matrix_view<const T> w, bool transposed,
                matrix_view<Y> y, bool accumulate) {
    using C = compute_t<T>;
    if (packed != nullptr) return detail::multiply(*pool_, y, x, *packed, accumulate);
    thread_pool::exclusive turn(*pool_);
    const index depth = transposed ? w.cols : w.rows, cols = transposed ? w.rows : w.cols;
    packed_matrix<C> b(turn.scratch<C>(packed_matrix<C>::size(depth, cols)), depth, cols);
    if (transposed)
      b.pack_transposed(*pool_, w);
    else
      b.pack(*pool_, w);
    detail::multiply(*pool_, y, x, b, accumulate);
  }

  std::shared_ptr<thread_pool> pool_;
};

static_assert(mixed_backend<cpu> && updating_backend<cpu, float> && updating_backend<cpu, double>);

GYRE_END
