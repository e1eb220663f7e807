// Matrix products of the `cuda` backend: single ones are the device's library calls, grouped ones kernels.
#pragma once

#include <cstdint>

#include <gyre/backend/cuda/kernels/grouped_product.cuh>
#include <gyre/core/context.hpp>
#include <gyre/core/error.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

template <class Backend>
struct cuda_products {
  template <class T, class Prepared, class Y>
  void product(matrix_view<const T> x, weight_matrix<T, Prepared> w, matrix_view<Y> y, bool accumulate) {
    check_product("product", y, x.rows, x.cols, w.raw.cols, w.raw.rows);
    if (y.size() > 0) device().template multiply<T, Y>(x, false, w.raw, true, y, accumulate);
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

  template <class T, class Prepared>
  void grouped_product(matrix_view<const T> x, weight_matrix<T, Prepared> w, row_groups groups, matrix_view<T> y,
                       bool accumulate) {
    check_product("grouped_product", y, x.rows, x.cols, w.raw.cols, w.raw.rows);
    multiply_rows<consecutive::depth>("grouped_product", x, w.raw, groups, y, accumulate);
  }
  template <class T, class Prepared>
  void grouped_product_input_gradient(matrix_view<const T> dy, weight_matrix<T, Prepared> w, row_groups groups,
                                      matrix_view<T> dx, bool accumulate) {
    check_product("grouped_product_input_gradient", dx, dy.rows, dy.cols, w.raw.rows, w.raw.cols);
    multiply_rows<consecutive::outer>("grouped_product_input_gradient", dy, w.raw, groups, dx, accumulate);
  }
  template <class T, class G>
  void grouped_product_weight_gradient(matrix_view<const T> dy, matrix_view<const T> x, row_groups groups, matrix_view<G> dw) {
    constexpr const char* call = "grouped_product_weight_gradient";
    check_product(call, dw, dy.cols, dy.rows, x.rows, x.cols);
    check_groups(call, groups, dy.rows);
    if (dw.size() == 0 || dy.rows == 0) return;
    const bool apart = groups.stride >= (dw.rows - 1) * dw.stride + dw.cols ||                   // one behind the other
                       (groups.stride >= dw.cols && groups.count * groups.stride <= dw.stride);  // side by side
    if (groups.count > 1 && !apart)
      fail(call, ": matrices of ", dw.rows, " x ", dw.cols, " with rows ", dw.stride, " scalars apart overlap when they are ",
           groups.stride, " scalars apart");
    const dim3 blocks(static_cast<unsigned>(groups.count * product_tiles(dw.rows) * product_tiles(dw.cols)));
    simt::launch(multiply_group_columns<T, G>, blocks, product_threads, 0, device().stream(), dy, lines_aligned(dy), x,
                 lines_aligned(x), groups, dw, matrices_aligned(dw, groups));
  }

 private:
  template <consecutive AlongW, class T>
  void multiply_rows(const char* call, matrix_view<const T> a, matrix_view<const T> w, row_groups groups, matrix_view<T> c,
                     bool accumulate) {
    check_groups(call, groups, a.rows);
    if (c.size() == 0) return;
    const dim3 blocks(static_cast<unsigned>(grouped_tiles(a.rows, groups.count) * product_tiles(c.cols)));
    simt::launch(multiply_groups<T, AlongW>, blocks, product_threads, 0, device().stream(), a, lines_aligned(a), w,
                 matrices_aligned(w, groups), groups, c, lines_aligned(c), accumulate);
  }
  /// What the host can know of offsets that lie on the device.
  static void check_groups(const char* call, row_groups groups, index rows) {
    if (groups.count < 0 || (groups.count > 0 && groups.offsets == nullptr))
      fail(call, ": ", groups.count, " groups", groups.count > 0 ? " without offsets" : "");
    require(groups.count > 0 || rows == 0, call, ": 0 groups, but the operands have ", rows, " rows");
  }
  static bool aligned(std::uintptr_t bytes) { return bytes % 16 == 0; }
  template <class T>
  static bool lines_aligned(matrix_view<T> x) {
    return aligned(reinterpret_cast<std::uintptr_t>(x.data)) && aligned(static_cast<std::uintptr_t>(x.stride) * sizeof(T));
  }
  template <class T>
  static bool matrices_aligned(matrix_view<T> first, row_groups groups) {
    return lines_aligned(first) && aligned(static_cast<std::uintptr_t>(groups.stride) * sizeof(T));
  }
  auto& device() { return static_cast<Backend&>(*this).device(); }
};

}  // namespace detail

GYRE_END
