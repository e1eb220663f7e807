// Calls of the operations on rows.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <tuple>

#include <gyre/ops/shapes.hpp>
#include <gyre/parity/bench.hpp>

GYRE_BEGIN
namespace parity {

template <>
struct setting<operation::fill> {
  static constexpr std::array dimensions{sizes::rows, sizes::cols, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    return std::tuple{b.out(b["rows"], b["cols"]), T(2.5)};
  }
};

template <>
struct setting<operation::copy> {
  static constexpr std::array dimensions{sizes::rows, sizes::cols, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    return std::tuple{b.template in<compute_t<T>>(b["rows"], b["cols"]), b.out(b["rows"], b["cols"])};  // rounds
  }
};

template <>
struct setting<operation::add> {
  static constexpr std::array dimensions{sizes::rows, sizes::cols, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    return std::tuple{b.in(b["rows"], b["cols"]), b.io(b["rows"], b["cols"])};
  }
};

template <>
struct setting<operation::add_scaled> {
  static constexpr std::array dimensions{sizes::rows, sizes::cols, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    return std::tuple{b.in(b["rows"], b["cols"]), b.in(1), b.io(b["rows"], b["cols"])};
  }
};

template <>
struct setting<operation::add_scaled_backward> {
  static constexpr std::array dimensions{sizes::rows, sizes::cols, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], m = b["cols"];
    return std::tuple{b.in(n, m), b.in(1), b.in(n, m), b.io(n, m), b.wide_io(1), b.wide_out(0)};
  }
};

template <>
struct setting<operation::gather> {
  static constexpr std::array dimensions{sizes::rows, dimension{"source", {1, 7, 129}}, sizes::cols, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], m = b["cols"];
    return std::tuple{b.in(b["source"], m), b.template numbers<index>(n, b["source"]), b.out(n, m)};
  }
};

template <>
struct setting<operation::embed> {
  static constexpr std::array dimensions{sizes::rows, sizes::vocabulary, sizes::cols, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], m = b["cols"];
    return std::tuple{b.in(b["vocabulary"], m), b.template numbers<token>(n, b["vocabulary"]), 3.7, b.out(n, m)};
  }
};

template <>
struct setting<operation::embed_backward> {
  static constexpr std::array dimensions{sizes::rows, sizes::vocabulary, sizes::cols, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], m = b["cols"];
    return std::tuple{b.in(n, m), b.template numbers<token>(n, b["vocabulary"]), 3.7,
                      b.template io<compute_t<T>>(b["vocabulary"], m)};
  }
};

template <>
struct setting<operation::rms_norm> {
  static constexpr std::array dimensions{sizes::rows, sizes::features, sizes::gain, sizes::in_place, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], m = b["cols"];
    const matrix_view<const T> x = b.in(n, m);
    const matrix_view<T> y = b["in_place"] > 0 ? detail::same(x) : b.out(n, m);
    return std::tuple{x, b["gain"] > 0 ? b.in(m) : nullptr, 1e-6, y, b.wide_out(n)};
  }
};

template <>
struct setting<operation::add_rms_norm> {
  static constexpr std::array dimensions{sizes::rows, sizes::features, sizes::gain, dimension{"in_place", {0, 1, 2}},
                                         gap,         offset,          special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], m = b["cols"];
    const matrix_view<const T> x = b.in(n, m), f = b.in(n, m);
    const matrix_view<T> sum = b["in_place"] == 0 ? b.out(n, m) : detail::same(b["in_place"] == 1 ? x : f);
    return std::tuple{x, f, b["gain"] > 0 ? b.in(m) : nullptr, 1e-6, sum, b.out(n, m), b.wide_out(n)};
  }
};

template <>
struct setting<operation::rms_norm_backward> {
  static constexpr std::array dimensions{sizes::rows, sizes::features, sizes::gain, dimension{"dgain", {0, 1}},
                                         gap,         offset,          special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], m = b["cols"];
    const matrix_view<const T> x = b.in(n, m), dy = b.in(n, m);
    const T* const gain = b["gain"] > 0 ? b.in(m) : nullptr;
    return std::tuple{x,
                      gain,
                      static_cast<const compute_t<T>*>(b.wide_io(n)),
                      dy,
                      b.io(n, m),
                      b["dgain"] > 0 ? b.wide_io(m) : nullptr,
                      b.wide_out(0)};
  }
};

template <>
struct setting<operation::gated_silu> {
  static constexpr std::array dimensions{sizes::rows, sizes::cols, sizes::spread, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    return std::tuple{b.in(b["rows"], 2 * b["cols"], static_cast<double>(b["spread"])), b.out(b["rows"], b["cols"])};
  }
};

template <>
struct setting<operation::gated_silu_backward> {
  static constexpr std::array dimensions{sizes::rows, sizes::cols, sizes::spread, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], m = b["cols"];
    return std::tuple{b.in(n, 2 * m, static_cast<double>(b["spread"])), b.in(n, m), b.out(n, 2 * m)};
  }
};

template <>
struct setting<operation::rotary> {
  static constexpr std::array dimensions{sizes::rows,       sizes::heads, sizes::pairs, sizes::bias,
                                         sizes::half_split, gap,          offset,       special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const rotary_shape shape{b["heads"], 2 * b["pairs"], b["half_split"] > 0 ? pairing::half_split : pairing::adjacent};
    const index m = shape.heads * shape.width;
    const T* const bias = b["bias"] > 0 ? b.in(m) : nullptr;
    return std::tuple{b.io(b["rows"], m), bias, b.template numbers<std::int32_t>(b["rows"], 50), b.turns(50, b["pairs"]),
                      shape};
  }
};

template <>
struct setting<operation::rotary_backward> {
  static constexpr std::array dimensions{sizes::rows, sizes::heads, sizes::pairs, sizes::half_split, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const rotary_shape shape{b["heads"], 2 * b["pairs"], b["half_split"] > 0 ? pairing::half_split : pairing::adjacent};
    return std::tuple{b.io(b["rows"], shape.heads * shape.width), b.template numbers<std::int32_t>(b["rows"], 50),
                      b.turns(50, b["pairs"]), shape};
  }
};

template <>
struct setting<operation::column_sum> {
  static constexpr std::array dimensions{sizes::rows, sizes::features, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    return std::tuple{b.in(b["rows"], b["cols"]), b.wide_io(b["cols"]), b.wide_out(0)};
  }
};

}  // namespace parity
GYRE_END
