// Elementwise operations of the `cuda` backend.
#pragma once

#include <span>
#include <type_traits>

#include <gyre/backend/cuda/kernels/elementwise.cuh>

GYRE_BEGIN

namespace detail {

template <class Backend>
struct cuda_elementwise {
  template <class T>
  void fill(matrix_view<T> y, std::type_identity_t<T> value) {
    each(y.rows, y.cols, fill_element<T>{y, value});
  }
  template <class T>
  void copy(matrix_view<const T> x, matrix_view<T> y) {
    each(y.rows, y.cols, copy_element<T>{x, y});
  }
  template <class T>
  void add(matrix_view<const T> x, matrix_view<T> y) {
    each(y.rows, y.cols, add_element<T>{x, y});
  }
  template <class T>
  void add_scaled(matrix_view<const T> x, const T* factor, matrix_view<T> y) {
    each(y.rows, y.cols, add_scaled_element<T>{x, factor, y});
  }
  template <class T>
  void gather(matrix_view<const T> x, std::span<const index> from, matrix_view<T> y) {
    each(y.rows, y.cols, gather_element<T>{x, device().stage(from), y});
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }
  template <class Body>
  void each(index rows, index cols, Body body) {
    simt::launch(for_each_element<Body>, blocks_for(rows * cols, elementwise_threads), elementwise_threads, 0,
                 device().stream(), rows, cols, body);
  }
};

}  // namespace detail

GYRE_END
