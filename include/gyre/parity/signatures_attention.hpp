// Operands of attention over a sequence, over a cache and over depth.
#pragma once

#include <functional>
#include <span>
#include <tuple>
#include <type_traits>

#include <gyre/parity/signature.hpp>

GYRE_BEGIN
namespace parity {

template <>
struct signature<operation::attention> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v_, const batch_layout& layout,
                  attention_shape shape, matrix_view<T> o, S* lse) {
    return std::tuple{v.input("q", q),
                      v.input("k", k),
                      v.input("v", v_),
                      std::cref(layout),
                      shape,
                      v.output("o", o),
                      v.output("lse", lse, q.rows * shape.heads)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.attention(a...);
  }
};

template <>
struct signature<operation::attention_backward> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v_, matrix_view<const T> o,
                  const S* lse, matrix_view<const T> d_o, const batch_layout& layout, attention_shape shape, matrix_view<T> dq,
                  matrix_view<T> dk, matrix_view<T> dv, S* workspace) {
    return std::tuple{v.input("q", q),
                      v.input("k", k),
                      v.input("v", v_),
                      v.input("o", o),
                      v.input("lse", lse, q.rows * shape.heads),
                      v.input("d_o", d_o),
                      std::cref(layout),
                      shape,
                      v.output("dq", dq),
                      v.output("dk", dk),
                      v.output("dv", dv),
                      v.workspace(workspace, V::backend::attention_backward_workspace(q.rows, shape))};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.attention_backward(a...);
  }
};

template <>
struct signature<operation::cache_append> {
  template <class V, class T>
  static auto map(V& v, matrix_view<const T> k, matrix_view<const T> v_, const batch_layout& layout,
                  std::span<const cache_lane<T>> lanes, index cursor) {
    return std::tuple{v.input("k", k), v.input("v", v_), std::cref(layout),
                      v.lanes("cache", lanes, cursor + k.cols + v_.cols, true), cursor};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.cache_append(a...);
  }
};

template <>
struct signature<operation::cached_attention> {
  template <class V, class T>
  static auto map(V& v, matrix_view<const T> q, const batch_layout& layout, std::span<const cache_lane<T>> lanes, index cursor,
                  attention_shape shape, int step, matrix_view<T> o) {
    return std::tuple{v.input("q", q),
                      std::cref(layout),
                      v.lanes("cache", lanes, cursor + 2 * shape.kv_heads * shape.width, false),
                      cursor,
                      shape,
                      step,
                      v.output("o", o)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.cached_attention(a...);
  }
};

template <>
struct signature<operation::cache_extend> {
  template <class V, class T>
  static auto map(V& v, const batch_layout& layout, std::span<const cache_lane<T>> lanes, std::span<const std::int32_t> copies,
                  index cursor, std::span<const index> blocks, index stride) {
    return std::tuple{std::cref(layout),        v.lanes("cache", lanes, cursor + detail::extent(copies, blocks, stride), true),
                      v.host("copies", copies), cursor,
                      v.host("blocks", blocks), stride};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.cache_extend(a...);
  }
};

template <>
struct signature<operation::rotate> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<T> x, const S* angles, rotary_shape shape, bool back) {
    return std::tuple{v.updated("x", x), v.host("angles", angles, shape.width), shape, back};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.rotate(a...);
  }
};

template <>
struct signature<operation::depth_attention> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v_, attention_shape shape,
                  matrix_view<T> o, S* lse) {
    return std::tuple{v.input("q", q), v.input("k", k),  v.input("v", v_),
                      shape,           v.output("o", o), v.output("lse", lse, q.rows * shape.heads)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.depth_attention(a...);
  }
};

template <>
struct signature<operation::depth_attention_backward> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v_, matrix_view<const T> o,
                  const S* lse, matrix_view<const T> d_o, attention_shape shape, matrix_view<T> dq, matrix_view<T> dk,
                  matrix_view<T> dv) {
    return std::tuple{v.input("q", q),
                      v.input("k", k),
                      v.input("v", v_),
                      v.input("o", o),
                      v.input("lse", lse, q.rows * shape.heads),
                      v.input("d_o", d_o),
                      shape,
                      v.output("dq", dq),
                      v.updated("dk", dk),
                      v.updated("dv", dv)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.depth_attention_backward(a...);
  }
};

}  // namespace parity
GYRE_END
