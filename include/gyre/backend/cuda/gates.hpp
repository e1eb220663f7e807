// Gates of the `cuda` backend.
#pragma once

#include <gyre/backend/cuda/kernels/gates.cuh>

GYRE_BEGIN

namespace detail {

/// Bytes that must move, of s a scalar: 3 s for each element of the result forward, 5 s backward.
template <class Backend>
struct cuda_gates {
  template <class T>
  void gated_silu(matrix_view<const T> h, matrix_view<T> a) {
    launch_for_each_element<T>(device().stream(), a.rows, a.cols, whole_packs<T>(a.cols, h, a), gated_silu_elements<T>{h, a});
  }
  template <class T>
  void gated_silu_backward(matrix_view<const T> h, matrix_view<const T> da, matrix_view<T> dh) {
    launch_for_each_element<T>(device().stream(), da.rows, da.cols, whole_packs<T>(da.cols, h, da, dh),
                               gated_silu_gradients<T>{h, da, dh});
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }
};

}  // namespace detail

GYRE_END
