// Reference matrix products.
#pragma once

#include <span>

#include <gyre/core/context.hpp>
#include <gyre/ops/shapes.hpp>

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

  template <class T, class Prepared>
  void grouped_product(matrix_view<const T> x, weight_matrix<T, Prepared> w, row_groups groups, matrix_view<T> y,
                       bool accumulate) {
    check_row_groups("grouped_product", groups, x.rows);
    for_each_group(groups, [&](index first, index count, index at) {
      product(x.slice(first, count), matrix_at(w, at), y.slice(first, count), accumulate);
    });
  }
  template <class T, class Prepared>
  void grouped_product_input_gradient(matrix_view<const T> dy, weight_matrix<T, Prepared> w, row_groups groups,
                                      matrix_view<T> dx, bool accumulate) {
    check_row_groups("grouped_product_input_gradient", groups, dy.rows);
    for_each_group(groups, [&](index first, index count, index at) {
      product_input_gradient(dy.slice(first, count), matrix_at(w, at), dx.slice(first, count), accumulate);
    });
  }
  template <class T>
  void grouped_product_weight_gradient(matrix_view<const T> dy, matrix_view<const T> x, row_groups groups, matrix_view<T> dw) {
    check_row_groups("grouped_product_weight_gradient", groups, dy.rows);
    for_each_group(groups, [&](index first, index count, index at) {
      product_weight_gradient(dy.slice(first, count), x.slice(first, count),
                              matrix_view<T>(dw.data + at, dw.rows, dw.cols, dw.stride));
    });
  }

 private:
  /// f(first row, rows, scalars from group 0's matrix) for every group with rows.
  template <class F>
  static void for_each_group(row_groups groups, F f) {
    for (index g = 0; g < groups.count; ++g)
      if (groups.offsets[g + 1] > groups.offsets[g])
        f(index{groups.offsets[g]}, index{groups.offsets[g + 1] - groups.offsets[g]}, g * groups.stride);
  }
  template <class T, class Prepared>
  static weight_matrix<T, Prepared> matrix_at(weight_matrix<T, Prepared> w, index at) {
    return {{w.raw.data + at, w.raw.rows, w.raw.cols, w.raw.stride}, w.prepared};
  }
};

}  // namespace detail

GYRE_END
