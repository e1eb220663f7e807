// Elementwise operations of the `cuda` backend.
#pragma once

#include <span>
#include <type_traits>

#include <gyre/backend/cuda/kernels/elementwise.cuh>

GYRE_BEGIN

namespace detail {

/// Bytes that must move at least, of s a scalar: fill s an element, copy and gather 2 s, add and add_scaled 3 s,
/// add_scaled_backward 4 s (x, dy, dx, dx) in one pass; it takes two, and 5 s.
template <class Backend>
struct cuda_elementwise {
  template <class T>
  void fill(matrix_view<T> y, std::type_identity_t<T> value) {
    launch_for_same_elements(
        device().stream(),
        [=](auto to) {
          return fill_elements<T>{to, value};
        },
        y);
  }
  template <class X, class T>
  void copy(matrix_view<const X> x, matrix_view<T> y) {
    if constexpr (std::is_same_v<X, T>)
      launch_for_same_elements(
          device().stream(),
          [](auto to, auto from) {
            return copy_elements<T>{to, from};
          },
          y, x);
    else
      launch_for_each_element<T>(device().stream(), y.rows, y.cols, std::false_type{}, convert_elements<X, T>{y, x});
  }
  template <class T>
  void add(matrix_view<const T> x, matrix_view<T> y) {
    launch_for_same_elements(
        device().stream(),
        [](auto to, auto from) {
          return add_elements<T>{to, from};
        },
        y, x);
  }
  template <class T>
  void add_scaled(matrix_view<const T> x, const T* factor, matrix_view<T> y) {
    launch_for_same_elements(
        device().stream(),
        [=](auto to, auto from) {
          return add_scaled_elements<T>{to, from, factor};
        },
        y, x);
  }
  static constexpr index add_scaled_backward_workspace(index rows) { return blocks_of_product_sum(rows); }
  template <class T, class G>
  void add_scaled_backward(matrix_view<const T> x, const T* factor, matrix_view<const T> dy, matrix_view<T> dx, G* dfactor,
                           G* workspace) {
    add_scaled(dy, factor, dx);
    const index blocks = blocks_of_product_sum(x.rows);
    if (blocks == 0) return;
    simt::launch(whole_packs<T>(x.cols, x, dy) ? sum_products<pack_width<T>, T, G> : sum_products<1, T, G>,
                 static_cast<unsigned>(blocks), elementwise_threads, 0, device().stream(), x, dy, workspace);
    simt::launch(add_sums<G>, 1, elementwise_threads, 0, device().stream(), workspace, blocks, dfactor);
  }
  template <class T>
  void gather(matrix_view<const T> x, std::span<const index> from, matrix_view<T> y) {
    launch_for_each_element<T>(device().stream(), y.rows, y.cols, rows_at_packs(y, x),
                               gather_elements<T>{y, x, device().stage(from)});
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }
};

}  // namespace detail

GYRE_END
