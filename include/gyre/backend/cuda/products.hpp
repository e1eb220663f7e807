// Matrix products of the `cuda` backend: single ones are the device's library calls.
#pragma once

#include <gyre/core/context.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

template <class Backend>
struct cuda_products {
  template <class T, class Prepared>
  void product(matrix_view<const T> x, weight_matrix<T, Prepared> w, matrix_view<T> y, bool accumulate) {
    check_product("product", y, x.rows, x.cols, w.raw.cols, w.raw.rows);
    if (y.size() > 0) device().template multiply<T, T>(x, false, w.raw, true, y, accumulate);
  }
  template <class T, class Prepared>
  void product_input_gradient(matrix_view<const T> dy, weight_matrix<T, Prepared> w, matrix_view<T> dx, bool accumulate) {
    check_product("product_input_gradient", dx, dy.rows, dy.cols, w.raw.rows, w.raw.cols);
    if (dx.size() > 0) device().template multiply<T, T>(dy, false, w.raw, false, dx, accumulate);
  }
  template <class T, class G>
  void product_weight_gradient(matrix_view<const T> dy, matrix_view<const T> x, matrix_view<G> dw) {
    check_product("product_weight_gradient", dw, dy.cols, dy.rows, x.rows, x.cols);
    if (dw.size() > 0 && dy.rows > 0) device().template multiply<T, G>(dy, true, x, false, dw, true);
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }
};

}  // namespace detail

GYRE_END
