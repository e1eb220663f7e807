// What concerns the depths of a token on the `cuda` backend: attention over earlier steps.
#pragma once

#include <gyre/backend/cuda/kernels/depth_attention.cuh>
#include <gyre/backend/cuda/kernels/elementwise.cuh>

GYRE_BEGIN

namespace detail {

template <class Backend>
struct cuda_depth {
  template <class T, class S>
  void depth_attention(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, attention_shape shape,
                       matrix_view<T> o, S* lse) {
    simt::launch(attend_depth<T, S>, blocks_for(q.rows * shape.heads * warp_lanes, depth_threads), depth_threads, 0,
                 device().stream(), q, k, v, slots(q.rows, k.rows), shape, o, lse);
  }
  template <class T, class S>
  void depth_attention_backward(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, matrix_view<const T> o,
                                const S* lse, matrix_view<const T> d_o, attention_shape shape, matrix_view<T> dq,
                                matrix_view<T> dk, matrix_view<T> dv) {
    const index steps = slots(q.rows, k.rows), scores = q.rows * shape.heads * steps;
    S* const weights = device().template workspace<S>(2 * scores);
    S* const d_scores = weights + scores;
    simt::launch(differentiate_depth_queries<T, S>, blocks_for(q.rows * shape.heads * warp_lanes, depth_threads), depth_threads,
                 0, device().stream(), q, k, v, o, lse, d_o, steps, shape, dq, weights, d_scores);
    launch_for_each_element<T>(device().stream(), dk.rows, dk.cols, false,
                               differentiate_depth_slot<T, S>{q, d_o, weights, d_scores, steps, shape, dk, dv});
  }

 private:
  static index slots(index tokens, index rows) { return tokens > 0 ? rows / tokens : 0; }
  auto& device() { return static_cast<Backend&>(*this).device(); }
};

}  // namespace detail

GYRE_END
