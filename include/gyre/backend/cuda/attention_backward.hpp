// Sequence attention of the `cuda` backend, backward.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <gyre/backend/cuda/attention.hpp>
#include <gyre/backend/cuda/kernels/attention_backward.cuh>

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
      using shapes = attention_gradient_shapes<T, Width>;
      using tile = typename shapes::tile;
      const auto run = [&](auto kernel, index group, std::size_t shared_bytes, bool last_first) {
        tasks_.clear();
        for (const sequence_span& s : layout.sequences())
          for (index first = 0; first < s.count * group; first += tile::left)
            tasks_.push_back({s.begin, s.count, first, (std::min)(index{tile::left}, s.count * group - first)});
        if (last_first) std::reverse(tasks_.begin(), tasks_.end());
        x.tasks = device().stage(std::span<const attention_gradient_task>(tasks_));
        simt::launch(kernel, dim3(static_cast<unsigned>(std::ssize(tasks_) * shape.kv_heads)), attention_threads, shared_bytes,
                     device().stream(), x);
      };
      // The blocks with the most work first: late queries see many keys, early keys are seen by many queries.
      run(query_gradients<T, S, tile>, shape.heads / shape.kv_heads, shapes::tiles_bytes + shapes::scores_bytes, true);
      run(key_gradients<T, S, tile>, 1, shapes::tiles_bytes + 2 * shapes::scores_bytes, false);
    });
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }

  std::vector<attention_gradient_task> tasks_;  // of the last launch: kept for its memory
};

}  // namespace detail

GYRE_END
