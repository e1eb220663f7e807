// Kernels of one thread for each element of a matrix.
#pragma once

#include <gyre/backend/cuda/kernels/device.cuh>

GYRE_BEGIN

namespace detail {

inline constexpr unsigned elementwise_threads = 256;

/// Calls body(row, column) for every element of a (rows, cols) matrix.
template <class Body>
GYRE_KERNEL void __launch_bounds__(elementwise_threads) for_each_element(index rows, index cols, Body body) {
  const index at = thread_number();
  if (at >= rows * cols) return;
  body(at / cols, at % cols);
}

template <class T>
struct fill_element {
  matrix_view<T> y;
  T value;
  GYRE_DEVICE void operator()(index i, index j) const { y[i][j] = value; }
};
template <class T>
struct copy_element {
  matrix_view<const T> x;
  matrix_view<T> y;
  GYRE_DEVICE void operator()(index i, index j) const { y[i][j] = x[i][j]; }
};
template <class T>
struct add_element {
  matrix_view<const T> x;
  matrix_view<T> y;
  GYRE_DEVICE void operator()(index i, index j) const { y[i][j] = narrow<T>(widen(y[i][j]) + widen(x[i][j])); }
};
template <class T>
struct add_scaled_element {
  matrix_view<const T> x;
  const T* factor;
  matrix_view<T> y;
  GYRE_DEVICE void operator()(index i, index j) const {
    y[i][j] = narrow<T>(widen(y[i][j]) + widen(factor[0]) * widen(x[i][j]));
  }
};
template <class T>
struct gather_element {
  matrix_view<const T> x;
  const index* from;
  matrix_view<T> y;
  GYRE_DEVICE void operator()(index i, index j) const { y[i][j] = x[from[i]][j]; }
};

}  // namespace detail

GYRE_END
