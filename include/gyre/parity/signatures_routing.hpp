// Operands of routing.
#pragma once

#include <functional>
#include <span>
#include <tuple>
#include <type_traits>

#include <gyre/parity/signature.hpp>

GYRE_BEGIN
namespace parity {

template <>
struct signature<operation::route> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<const T> scores, const std::type_identity_t<T>* bias, double scale, index active,
                  std::int32_t* chosen, S* logits, S* gates) {
    return std::tuple{v.input("scores", scores),
                      v.input("bias", bias, scores.cols),
                      scale,
                      active,
                      v.output("chosen", chosen, scores.rows * active),
                      v.output("logits", logits, scores.rows * active),
                      v.output("gates", gates, scores.rows * active)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.route(a...);
  }
};

template <>
struct signature<operation::route_backward> {
  template <class V, class T, class S>
  static auto map(V& v, const S* logits, const S* gates, const std::int32_t* chosen, const S* d_gates, double scale,
                  index active, matrix_view<T> d_scores) {
    return std::tuple{v.input("logits", logits, d_scores.rows * active),
                      v.input("gates", gates, d_scores.rows * active),
                      v.input("chosen", chosen, d_scores.rows * active),
                      v.input("d_gates", d_gates, d_scores.rows * active),
                      scale,
                      active,
                      v.output("d_scores", d_scores)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.route_backward(a...);
  }
};

template <>
struct signature<operation::group_pairs> {
  template <class V>
  static auto map(V& v, const std::int32_t* chosen, index pairs, index experts, std::int32_t* offsets, std::int32_t* place,
                  std::int32_t* source) {
    return std::tuple{v.input("chosen", chosen, pairs),
                      pairs,
                      experts,
                      v.output("offsets", offsets, experts + 1),
                      v.output("place", place, pairs),
                      v.output("source", source, pairs)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.group_pairs(a...);
  }
};

template <>
struct signature<operation::spread> {
  template <class V, class T>
  static auto map(V& v, matrix_view<const T> x, const std::int32_t* source, index active, matrix_view<T> y) {
    return std::tuple{v.input("x", x), v.input("source", source, y.rows), active, v.output("y", y)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.spread(a...);
  }
};

template <>
struct signature<operation::collect> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<const T> y, const std::int32_t* place, const S* gates, index active, matrix_view<T> x) {
    return std::tuple{v.input("y", y), v.input("place", place, x.rows * active), v.input("gates", gates, x.rows * active),
                      active, v.updated("x", x)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.collect(a...);
  }
};

template <>
struct signature<operation::collect_backward> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<const T> dx, matrix_view<const T> y, const std::int32_t* place, const S* gates,
                  index active, matrix_view<T> dy, S* d_gates) {
    return std::tuple{v.input("dx", dx),
                      v.input("y", y),
                      v.input("place", place, dx.rows * active),
                      v.input("gates", gates, dx.rows * active),
                      active,
                      v.output("dy", dy),
                      v.updated("d_gates", d_gates, dx.rows * active)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.collect_backward(a...);
  }
};

template <>
struct signature<operation::router_loss> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<const T> scores, double scale, const std::int32_t* chosen, index active,
                  const batch_layout& layout, router_loss_weights weights, S* losses) {
    return std::tuple{v.input("scores", scores), scale,   v.input("chosen", chosen, scores.rows * active),           active,
                      std::cref(layout),         weights, v.output("losses", losses, std::ssize(layout.sequences()))};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.router_loss(a...);
  }
};

template <>
struct signature<operation::router_loss_backward> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<const T> scores, double scale, const std::int32_t* chosen, index active,
                  const batch_layout& layout, router_loss_weights weights, S factor, matrix_view<T> d_scores) {
    return std::tuple{v.input("scores", scores),
                      scale,
                      v.input("chosen", chosen, scores.rows * active),
                      active,
                      std::cref(layout),
                      weights,
                      v.scalar(factor),
                      v.updated("d_scores", d_scores)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.router_loss_backward(a...);
  }
};

}  // namespace parity
GYRE_END
