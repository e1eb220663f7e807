// Calls of attention over a sequence, over a cache and over depth.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <tuple>

#include <gyre/backend/reference.hpp>
#include <gyre/ops/shapes.hpp>
#include <gyre/parity/bench.hpp>

GYRE_BEGIN
namespace parity {

namespace detail {

template <class T>
attention_shape heads_of(bench<T>& b) {
  const index kv_heads = b["kv_heads"], width = b["width"];
  return {kv_heads * b["sharing"], kv_heads, width, 1 / std::sqrt(static_cast<double>(width))};
}

/// A lane for every sequence with `width` scalars a token, full of numbers; with `skip`, past tokens ran 0 to 3 steps.
template <class T>
std::span<const cache_lane<T>> lanes_of(bench<T>& b, const batch_layout& rows, index width) {
  cache_lane<T>* const lanes = b.template take<cache_lane<T>>(std::ssize(rows.sequences()));
  std::size_t number = 0;
  for (const sequence_span& s : rows.sequences()) {
    const index capacity = s.past + s.count + 2;
    lanes[number++] = {b.io(width * capacity), capacity,
                       b["skip"] > 0 ? b.template numbers<std::int32_t>(capacity, 4).data() : nullptr};
  }
  return {lanes, number};
}

}  // namespace detail

template <>
struct setting<operation::attention> {
  static constexpr std::array dimensions{sizes::sequences, sizes::length, sizes::kv_heads, sizes::sharing,
                                         sizes::width,     gap,           offset,          special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const attention_shape shape = detail::heads_of(b);
    const batch_layout& rows = b.layout();
    const index n = rows.rows(), wide = shape.heads * shape.width, narrow = shape.kv_heads * shape.width;
    const auto q = b.in(n, wide), k = b.in(n, narrow), v = b.in(n, narrow);
    return std::tuple{q, k, v, std::cref(rows), shape, b.out(n, wide), b.wide_out(n * shape.heads)};
  }
};

template <>
struct setting<operation::attention_backward> {
  static constexpr std::array dimensions{sizes::sequences, sizes::length, sizes::kv_heads, sizes::sharing,
                                         sizes::width,     gap,           offset,          special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const attention_shape shape = detail::heads_of(b);
    const batch_layout& rows = b.layout();
    const index n = rows.rows(), wide = shape.heads * shape.width, narrow = shape.kv_heads * shape.width;
    const auto q = b.in(n, wide), k = b.in(n, narrow), v = b.in(n, narrow), d_o = b.in(n, wide);
    const auto o = b.out(n, wide);
    auto* const lse = b.wide_out(n * shape.heads);
    reference().attention(q, k, v, rows, shape, o, lse);
    return std::tuple{q,
                      k,
                      v,
                      matrix_view<const T>(o),
                      static_cast<const compute_t<T>*>(lse),
                      d_o,
                      std::cref(rows),
                      shape,
                      b.out(n, wide),
                      b.out(n, narrow),
                      b.out(n, narrow),
                      b.wide_out(0)};
  }
};

template <>
struct setting<operation::cache_append> {
  static constexpr std::array dimensions{sizes::sequences, sizes::length, sizes::past, sizes::cached_cols,
                                         sizes::cursor,    gap,           offset,      special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const batch_layout& rows = b.layout();
    const index n = rows.rows(), m = b["cols"];
    return std::tuple{b.in(n, m), b.in(n, m), std::cref(rows), detail::lanes_of(b, rows, b["cursor"] + 2 * m), b["cursor"]};
  }
};

template <>
struct setting<operation::cached_attention> {
  static constexpr std::array dimensions{sizes::sequences,
                                         sizes::length,
                                         dimension{"past", {0, 1, 7, 33}},
                                         sizes::kv_heads,
                                         sizes::sharing,
                                         sizes::width,
                                         sizes::cursor,
                                         dimension{"skip", {0, 1}},
                                         gap,
                                         offset,
                                         special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const attention_shape shape = detail::heads_of(b);
    const batch_layout& rows = b.layout();
    const index n = rows.rows(), wide = shape.heads * shape.width;
    const auto lanes = detail::lanes_of(b, rows, b["cursor"] + 2 * shape.kv_heads * shape.width);
    return std::tuple{b.in(n, wide), std::cref(rows), lanes, b["cursor"], shape, 1, b.out(n, wide)};
  }
};

template <>
struct setting<operation::cache_extend> {
  static constexpr std::array dimensions{
      sizes::sequences, sizes::length, sizes::past, sizes::cached_cols, sizes::cursor, dimension{"copies", {0, 1, 3}}, gap,
      offset,           special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const batch_layout& rows = b.layout();
    index* const blocks = b.template take<index>(2);
    blocks[0] = blocks[1] = b["cols"];
    const index stride = 2 * b["cols"] + 1;
    std::span<const std::int32_t> copies = b.template numbers<std::int32_t>(std::ssize(rows.sequences()), b["copies"] + 1);
    const auto lanes = detail::lanes_of(b, rows, b["cursor"] + stride * (b["copies"] + 1));
    return std::tuple{std::cref(rows), lanes, copies, b["cursor"], std::span<const index>(blocks, 2), stride};
  }
};

template <>
struct setting<operation::rotate> {
  static constexpr std::array dimensions{sizes::rows, sizes::heads, sizes::pairs, sizes::half_split, dimension{"back", {0, 1}},
                                         gap,         offset,       special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const rotary_shape shape{b["heads"], 2 * b["pairs"], b["half_split"] > 0 ? pairing::half_split : pairing::adjacent};
    return std::tuple{b.io(b["rows"], shape.heads * shape.width), b.turns(4, b["pairs"]) + 3 * shape.width, shape,
                      b["back"] > 0};
  }
};

template <>
struct setting<operation::depth_attention> {
  static constexpr std::array dimensions{sizes::rows,  sizes::slots, sizes::kv_heads, sizes::sharing,
                                         sizes::width, gap,          offset,          special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const attention_shape shape = detail::heads_of(b);
    const index n = b["rows"], slots = b["slots"], wide = shape.heads * shape.width, narrow = shape.kv_heads * shape.width;
    const auto q = b.in(n, wide), k = b.in(slots * n, narrow), v = b.in(slots * n, narrow);
    return std::tuple{q, k, v, shape, b.out(n, wide), b.wide_out(n * shape.heads)};
  }
};

template <>
struct setting<operation::depth_attention_backward> {
  static constexpr std::array dimensions{sizes::rows,  sizes::slots, sizes::kv_heads, sizes::sharing,
                                         sizes::width, gap,          offset,          special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const attention_shape shape = detail::heads_of(b);
    const index n = b["rows"], slots = b["slots"], wide = shape.heads * shape.width, narrow = shape.kv_heads * shape.width;
    const auto q = b.in(n, wide), k = b.in(slots * n, narrow), v = b.in(slots * n, narrow), d_o = b.in(n, wide);
    const auto o = b.out(n, wide);
    auto* const lse = b.wide_out(n * shape.heads);
    reference().depth_attention(q, k, v, shape, o, lse);
    return std::tuple{q,
                      k,
                      v,
                      matrix_view<const T>(o),
                      static_cast<const compute_t<T>*>(lse),
                      d_o,
                      shape,
                      b.out(n, wide),
                      b.io(slots * n, narrow),
                      b.io(slots * n, narrow)};
  }
};

}  // namespace parity
GYRE_END
