// Reference matrix products.
#pragma once

#include <span>
#include <vector>

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
  template <class T, class Prepared, class Y>
  void product(matrix_view<const T> x, weight_matrix<T, Prepared> w, matrix_view<Y> y, bool accumulate) {
    using C = compute_t<T>;
    for (index i = 0; i < y.rows; ++i)
      for (index o = 0; o < y.cols; ++o) {
        C dot(0);
        for (index k = 0; k < x.cols; ++k) dot += C(x[i][k]) * C(w.raw[o][k]);
        y[i][o] = accumulate ? Y(C(y[i][o]) + dot) : Y(dot);
      }
  }
  template <class T, class Prepared>
  void product_input_gradient(matrix_view<const T> dy, weight_matrix<T, Prepared> w, matrix_view<T> dx, bool accumulate) {
    using C = compute_t<T>;
    std::vector<C> sums(static_cast<std::size_t>(dx.cols));
    for (index i = 0; i < dx.rows; ++i) {
      for (index k = 0; k < dx.cols; ++k) sums[static_cast<std::size_t>(k)] = accumulate ? C(dx[i][k]) : C(0);
      for (index o = 0; o < dy.cols; ++o)
        for (index k = 0; k < dx.cols; ++k) sums[static_cast<std::size_t>(k)] += C(dy[i][o]) * C(w.raw[o][k]);
      for (index k = 0; k < dx.cols; ++k) dx[i][k] = T(sums[static_cast<std::size_t>(k)]);
    }
  }
  template <class T, class G>
  void product_weight_gradient(matrix_view<const T> dy, matrix_view<const T> x, matrix_view<G> dw) {
    using C = compute_t<T>;
    for (index i = 0; i < dy.rows; ++i)
      for (index o = 0; o < dy.cols; ++o)
        for (index k = 0; k < x.cols; ++k) dw[o][k] += G(C(dy[i][o]) * C(x[i][k]));
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
  template <class T, class G>
  void grouped_product_weight_gradient(matrix_view<const T> dy, matrix_view<const T> x, row_groups groups, matrix_view<G> dw) {
    check_row_groups("grouped_product_weight_gradient", groups, dy.rows);
    for_each_group(groups, [&](index first, index count, index at) {
      product_weight_gradient(dy.slice(first, count), x.slice(first, count),
                              matrix_view<G>(dw.data + at, dw.rows, dw.cols, dw.stride));
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
