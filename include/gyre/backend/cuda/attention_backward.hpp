// Sequence attention of the `cuda` backend, backward.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <gyre/backend/cuda/attention.hpp>
#include <gyre/backend/cuda/kernels/attention_backward.cuh>
#include <gyre/backend/cuda/kernels/attention_backward_bf16.cuh>

GYRE_BEGIN

namespace detail {

template <class Backend>
struct cuda_attention_backward {
  /// For the dot products of o and d_o, (rows, heads).
  static constexpr index attention_backward_workspace(index rows, attention_shape shape) { return rows * shape.heads; }

  template <class T, class S>
  void attention_backward(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, matrix_view<const T> o,
                          const S* lse, matrix_view<const T> d_o, const batch_layout& layout, attention_shape shape,
                          matrix_view<T> dq, matrix_view<T> dk, matrix_view<T> dv, S* workspace) {
    attention_gradients<T, S> x{q,           k,
                                v,           o,
                                lse,         d_o,
                                workspace,   dq,
                                dk,          dv,
                                shape.heads, shape.kv_heads,
                                shape.width, static_cast<compute_t<T>>(shape.scale)};
    constexpr unsigned rows_at_once = attention_threads / warp_lanes;
    simt::launch(dot_rows<T, S>, blocks_for(o.rows * shape.heads, rows_at_once), attention_threads, 0, device().stream(), x);
    with_head_width("attention_backward", shape.width, [&]<unsigned Width>() {
      const index group = shape.heads / shape.kv_heads;
      const auto run = [&](auto kernel, index rows_of_token, index rows, unsigned threads, std::size_t shared_bytes,
                           bool last_first) {
        tasks_.clear();
        for (const sequence_span& s : layout.sequences())
          for (index first = 0; first < s.count * rows_of_token; first += rows)
            tasks_.push_back({s.begin, s.count, first, (std::min)(rows, s.count * rows_of_token - first)});
        if (last_first) std::reverse(tasks_.begin(), tasks_.end());
        x.tasks = device().stage(std::span<const attention_gradient_task>(tasks_));
        simt::launch(kernel, dim3(static_cast<unsigned>(std::ssize(tasks_) * shape.kv_heads)), threads, shared_bytes,
                     device().stream(), x);
      };
      // The blocks with the most work first: late queries see many keys, early keys are seen by many queries.
      if constexpr (std::is_same_v<T, bfloat16> && Width <= 128) {
        if (shape.width == Width && on_tensor_cores(x)) {
          using of_queries = bf16_tile<Width, 4>;
          using of_keys = bf16_tile<Width, 4, Width <= 64 ? 64 : 32>;
          run(query_gradients_bf16<S, of_queries>, group, of_queries::left, of_queries::threads,
              gradients_bf16_bytes<of_queries>, true);
          run(key_gradients_bf16<S, of_keys>, 1, of_keys::left, of_keys::threads, gradients_bf16_bytes<of_keys>, false);
          return;
        }
      }
      using shapes = attention_gradient_shapes<T, Width>;
      using tile = typename shapes::tile;
      run(query_gradients<T, S, tile>, group, tile::left, attention_threads, shapes::tiles_bytes + shapes::scores_bytes, true);
      run(key_gradients<T, S, tile>, 1, tile::left, attention_threads, shapes::tiles_bytes + 2 * shapes::scores_bytes, false);
    });
  }

 private:
  template <class T, class S>
  static bool on_tensor_cores(const attention_gradients<T, S>& x) {
    const auto loads = [](matrix_view<const T> m) { return rows_aligned(m.data, m.stride, 16); };
    const auto stores = [](matrix_view<T> m) { return rows_aligned(m.data, m.stride, 4); };
    return loads(x.q) && loads(x.k) && loads(x.v) && loads(x.d_o) && stores(x.dq) && stores(x.dk) && stores(x.dv);
  }

  auto& device() { return static_cast<Backend&>(*this).device(); }

  std::vector<attention_gradient_task> tasks_;  // of the last launch: kept for its memory
};

}  // namespace detail

GYRE_END
