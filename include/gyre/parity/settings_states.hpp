// Calls of losses, initial states and changes of rows.
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
struct setting<operation::row_change> {
  static constexpr std::array dimensions{sizes::rows, sizes::features, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    return std::tuple{b.in(b["rows"], b["cols"]), b.in(b["rows"], b["cols"]), b.wide_out(2 * b["rows"])};
  }
};

template <>
struct setting<operation::cross_entropy> {
  static constexpr std::array dimensions{sizes::rows,
                                         dimension{"vocabulary", {1, 5, 64, 257}},
                                         dimension{"gradient", {0, 1}},
                                         dimension{"spread", {1, 50}},
                                         gap,
                                         offset,
                                         special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], vocabulary = b["vocabulary"];
    const auto logits = detail::same(b.in(n, vocabulary, static_cast<double>(b["spread"])));
    token* const targets = b.template take<token>(n);
    for (index i = 0; i < n; ++i) targets[i] = static_cast<token>(b.draw(5) == 3 ? -1 : b.draw(vocabulary));
    return std::tuple{logits, std::span<const token>(targets, static_cast<std::size_t>(n)), compute_t<T>(0.37), b.wide_out(n),
                      b["gradient"] > 0};
  }
};

template <>
struct setting<operation::sum> {
  static constexpr std::array dimensions{dimension{"count", {0, 1, 7, 129, 4097}}, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    return std::tuple{static_cast<const compute_t<T>*>(b.template in<compute_t<T>>(1, b["count"]).data), b["count"],
                      b.wide_out(1)};
  }
};

template <>
struct setting<operation::random_normal> {
  static constexpr std::array dimensions{
      sizes::sequences, sizes::length, sizes::past, sizes::features, dimension{"truncated", {0, 1}}, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const batch_layout& rows = b.layout();
    return std::tuple{b.out(rows.rows(), b["cols"]), std::cref(rows), state_key{seed{77}, 12}, 0.6, b["truncated"] > 0};
  }
};

template <>
struct setting<operation::standardise> {
  static constexpr std::array dimensions{sizes::rows, dimension{"cols", {2, 3, 40, 129}}, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    return std::tuple{detail::same(b.in(b["rows"], b["cols"]))};
  }
};

}  // namespace parity
GYRE_END
