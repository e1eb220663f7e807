// Operands of products, and of the updates of parameters.
#pragma once

#include <functional>
#include <span>
#include <tuple>
#include <type_traits>

#include <gyre/parity/signature.hpp>

GYRE_BEGIN
namespace parity {

template <>
struct signature<operation::product> {
  template <class V, class T, class Prepared, class Y>
  static auto map(V& v, matrix_view<const T> x, weight_matrix<T, Prepared> w, matrix_view<Y> y, bool accumulate) {
    return std::tuple{v.input("x", x), v.weight("w", w), v.accumulated("y", y, accumulate), accumulate};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.product(a...);
  }
};

template <>
struct signature<operation::product_input_gradient> {
  template <class V, class T, class Prepared>
  static auto map(V& v, matrix_view<const T> dy, weight_matrix<T, Prepared> w, matrix_view<T> dx, bool accumulate) {
    return std::tuple{v.input("dy", dy), v.weight("w", w), v.accumulated("dx", dx, accumulate), accumulate};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.product_input_gradient(a...);
  }
};

template <>
struct signature<operation::product_weight_gradient> {
  template <class V, class T, class G>
  static auto map(V& v, matrix_view<const T> dy, matrix_view<const T> x, matrix_view<G> dw) {
    return std::tuple{v.input("dy", dy), v.input("x", x), v.updated("dw", dw)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.product_weight_gradient(a...);
  }
};

template <>
struct signature<operation::grouped_product> {
  template <class V, class T, class Prepared>
  static auto map(V& v, matrix_view<const T> x, weight_matrix<T, Prepared> w, row_groups groups, matrix_view<T> y,
                  bool accumulate) {
    return std::tuple{v.input("x", x), v.weight("w", w, groups), v.groups(groups), v.accumulated("y", y, accumulate),
                      accumulate};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.grouped_product(a...);
  }
};

template <>
struct signature<operation::grouped_product_input_gradient> {
  template <class V, class T, class Prepared>
  static auto map(V& v, matrix_view<const T> dy, weight_matrix<T, Prepared> w, row_groups groups, matrix_view<T> dx,
                  bool accumulate) {
    return std::tuple{v.input("dy", dy), v.weight("w", w, groups), v.groups(groups), v.accumulated("dx", dx, accumulate),
                      accumulate};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.grouped_product_input_gradient(a...);
  }
};

template <>
struct signature<operation::grouped_product_weight_gradient> {
  template <class V, class T, class G>
  static auto map(V& v, matrix_view<const T> dy, matrix_view<const T> x, row_groups groups, matrix_view<G> dw) {
    return std::tuple{v.input("dy", dy), v.input("x", x), v.groups(groups), v.weight_gradient("dw", dw, groups)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.grouped_product_weight_gradient(a...);
  }
};

template <>
struct signature<operation::squared_norm> {
  template <class V, class T>
  static auto map(V& v, const T* x, index count, double* squares) {
    return std::tuple{v.input("x", x, count), count, v.output("squares", squares, 1)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.squared_norm(a...);
  }
};

template <>
struct signature<operation::unit> {
  template <class V, class T>
  static auto map(V& v, const T* x, const double* squares, T* y, index count) {
    return std::tuple{v.input("x", x, count), v.input("squares", squares, 1), v.output("y", y, count), count};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.unit(a...);
  }
};

template <>
struct signature<operation::combine> {
  template <class V, class T>
  static auto map(V& v, std::type_identity_t<T> a, const T* x, std::type_identity_t<T> b, T* y, index count) {
    return std::tuple{v.scalar(a), v.input("x", x, count), v.scalar(b), v.accumulated("y", y, count, b != T(0)), count};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.combine(a...);
  }
};

template <>
struct signature<operation::adamw_update> {
  template <class V, class T>
  static auto map(V& v, T* w, const T* g, T* m, T* moments, index count, const adamw_numbers& numbers) {
    return std::tuple{v.updated("w", w, count),
                      v.input("g", g, count),
                      v.updated("m", m, count),
                      v.updated("v", moments, count),
                      count,
                      numbers};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.adamw_update(a...);
  }
};

template <>
struct signature<operation::clipped_atan2_update> {
  template <class V, class T>
  static auto map(V& v, T* w, const T* g, T* m, T* moments, index count, const clipped_atan2_numbers& numbers) {
    return std::tuple{v.updated("w", w, count),
                      v.input("g", g, count),
                      v.updated("m", m, count),
                      v.updated("v", moments, count),
                      count,
                      numbers};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.clipped_atan2_update(a...);
  }
};

}  // namespace parity
GYRE_END
