// Calls of products and of updates of parameters.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <tuple>

#include <gyre/ops/updates.hpp>
#include <gyre/parity/bench.hpp>

GYRE_BEGIN
namespace parity {

/// The prepared weights of nobody: trials give matrices as they lie.
struct nothing {};

template <>
struct setting<operation::product> {
  static constexpr std::array dimensions{sizes::rows, sizes::out, sizes::in, sizes::accumulate, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"];
    const weight_matrix<T, nothing> w{b.in(b["out"], b["in"]), nullptr};
    return std::tuple{b.in(n, b["in"]), w, b.io(n, b["out"]), b["accumulate"] > 0};
  }
};

template <>
struct setting<operation::product_input_gradient> {
  static constexpr std::array dimensions{sizes::rows, sizes::out, sizes::in, sizes::accumulate, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"];
    const weight_matrix<T, nothing> w{b.in(b["out"], b["in"]), nullptr};
    return std::tuple{b.in(n, b["out"]), w, b.io(n, b["in"]), b["accumulate"] > 0};
  }
};

template <>
struct setting<operation::product_weight_gradient> {
  static constexpr std::array dimensions{sizes::rows, sizes::out, sizes::in, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    return std::tuple{b.in(b["rows"], b["out"]), b.in(b["rows"], b["in"]), b.template io<compute_t<T>>(b["out"], b["in"])};
  }
};

template <>
struct setting<operation::grouped_product> {
  static constexpr std::array dimensions{sizes::rows,       sizes::out, sizes::in, sizes::groups,
                                         sizes::accumulate, gap,        offset,    special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], out = b["out"], in = b["in"], stride = out * in + (b[gap.name] > 0 ? 5 : 0);
    const row_groups groups = b.groups(n, b["groups"], stride);
    const weight_matrix<T, nothing> w{{b.in(groups.count * stride), out, in}, nullptr};
    return std::tuple{b.in(n, in), w, groups, b.io(n, out), b["accumulate"] > 0};
  }
};

template <>
struct setting<operation::grouped_product_input_gradient> {
  static constexpr std::array dimensions{sizes::rows,       sizes::out, sizes::in, sizes::groups,
                                         sizes::accumulate, gap,        offset,    special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], out = b["out"], in = b["in"], stride = out * in + (b[gap.name] > 0 ? 5 : 0);
    const row_groups groups = b.groups(n, b["groups"], stride);
    const weight_matrix<T, nothing> w{{b.in(groups.count * stride), out, in}, nullptr};
    return std::tuple{b.in(n, out), w, groups, b.io(n, in), b["accumulate"] > 0};
  }
};

template <>
struct setting<operation::grouped_product_weight_gradient> {
  static constexpr std::array dimensions{sizes::rows, sizes::out, sizes::in, sizes::groups, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], out = b["out"], in = b["in"], stride = out * in + (b[gap.name] > 0 ? 5 : 0);
    const row_groups groups = b.groups(n, b["groups"], stride);
    return std::tuple{b.in(n, out), b.in(n, in), groups, matrix_view<compute_t<T>>(b.wide_io(groups.count * stride), out, in)};
  }
};

template <>
struct setting<operation::squared_norm> {
  static constexpr std::array dimensions{sizes::count, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    return std::tuple{b.in(b["count"]), b["count"], b.template out<double>(1, 1).data};
  }
};

template <>
struct setting<operation::unit> {
  static constexpr std::array dimensions{sizes::count, sizes::in_place, dimension{"zero", {0, 1}}, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["count"];
    T* const y = b.out(n);
    const matrix_view<const T> x = b.in(1, n);
    if (b["in_place"] > 0) std::copy_n(x.data, n, y);
    double* const squares = b.template out<double>(1, 1).data;
    for (index i = 0; b["zero"] == 0 && i < n; ++i)
      squares[0] += static_cast<double>(x.data[i]) * static_cast<double>(x.data[i]);
    return std::tuple{b["in_place"] > 0 ? static_cast<const T*>(y) : x.data, static_cast<const double*>(squares), y, n};
  }
};

template <>
struct setting<operation::combine> {
  static constexpr std::array dimensions{sizes::count, sizes::accumulate, sizes::in_place, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["count"];
    T* const y = b.io(n);
    const T* const x = b["in_place"] > 0 ? y : b.in(n);
    return std::tuple{T(1.5), x, T(b["accumulate"] > 0 ? 0.75 : 0), y, n};
  }
};

template <>
struct setting<operation::adamw_update> {
  static constexpr std::array dimensions{sizes::count, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["count"];
    return std::tuple{b.io(n), b.in(n), b.io(n), b.squares(n), n, adamw_numbers{0.5, 0.9, 0.95, 1e-8, 1e-3, 0.01, 0.6}};
  }
};

template <>
struct setting<operation::clipped_atan2_update> {
  static constexpr std::array dimensions{sizes::count, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["count"];
    return std::tuple{b.io(n), b.in(n), b.io(n), b.squares(n), n, clipped_atan2_numbers{0.5, 0.9, 0.95, 1e-6, 1e-3, 0.01, 0.6}};
  }
};

}  // namespace parity
GYRE_END
