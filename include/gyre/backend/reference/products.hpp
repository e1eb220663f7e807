// Reference matrix products.
#pragma once

#include <span>

#include <gyre/core/context.hpp>

GYRE_BEGIN

namespace detail {

/// For backends that read weights as they lie.
template <class T>
struct nothing_prepared {
  template <class B>
  nothing_prepared(B&, const T*, std::span<const tensor_entry>, bool) {}
  template <class B>
  void refresh(B&) {}
};

struct reference_products {
  template <class T, class Prepared>
  void product(matrix_view<const T> x, weight_matrix<T, Prepared> w, matrix_view<T> y, bool accumulate) {
    for (index i = 0; i < y.rows; ++i)
      for (index o = 0; o < y.cols; ++o) {
        T dot(0);
        for (index k = 0; k < x.cols; ++k) dot += x[i][k] * w.raw[o][k];
        y[i][o] = accumulate ? y[i][o] + dot : dot;
      }
  }
  template <class T, class Prepared>
  void product_input_gradient(matrix_view<const T> dy, weight_matrix<T, Prepared> w, matrix_view<T> dx, bool accumulate) {
    for (index i = 0; i < dx.rows; ++i) {
      if (!accumulate)
        for (index k = 0; k < dx.cols; ++k) dx[i][k] = T(0);
      for (index o = 0; o < dy.cols; ++o)
        for (index k = 0; k < dx.cols; ++k) dx[i][k] += dy[i][o] * w.raw[o][k];
    }
  }
  template <class T>
  void product_weight_gradient(matrix_view<const T> dy, matrix_view<const T> x, matrix_view<T> dw) {
    for (index i = 0; i < dy.rows; ++i)
      for (index o = 0; o < dy.cols; ++o)
        for (index k = 0; k < x.cols; ++k) dw[o][k] += dy[i][o] * x[i][k];
  }
};

}  // namespace detail

GYRE_END
