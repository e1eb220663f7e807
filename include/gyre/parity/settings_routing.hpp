// Calls of routing.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <tuple>

#include <gyre/backend/reference.hpp>
#include <gyre/ops/routing.hpp>
#include <gyre/parity/bench.hpp>

GYRE_BEGIN
namespace parity {

namespace detail {

/// Multiples of 1/8 from -4 to 4: products with powers of two and sums are exact, so that who is chosen depends on no rounding; equal
/// scores are frequent.
template <class T>
matrix_view<const compute_t<T>> eighths(bench<T>& b, index rows, index cols) {
  using S = compute_t<T>;
  const matrix_view<const S> drawn = b.template in<S>(rows, cols);
  S* const x = const_cast<S*>(drawn.data);  // NOLINT: of a bench, whose memory is not const
  for (index i = 0; i < drawn.size(); ++i)
    if (std::isfinite(x[i])) x[i] = static_cast<S>(static_cast<double>(b.draw(65) - 32) / 8);
  return drawn;
}

/// A routing of rows, by the reference.
template <class T>
struct routed {
  std::int32_t *chosen, *offsets, *place, *source;
  compute_t<T>*logits, *gates;
  routed(bench<T>& b, index rows, index experts, index active)
      : chosen(b.template take<std::int32_t>(rows * active)),
        offsets(b.template take<std::int32_t>(experts + 1)),
        place(b.template take<std::int32_t>(rows * active)),
        source(b.template take<std::int32_t>(rows * active)),
        logits(b.wide_out(rows * active)),
        gates(b.wide_out(rows * active)) {
    const matrix_view<const compute_t<T>> scores(b.template io<compute_t<T>>(rows, experts));
    reference().route(scores, nullptr, 1.0, active, chosen, logits, gates);
    reference().group_pairs(chosen, rows * active, experts, offsets, place, source);
  }
};

}  // namespace detail

template <>
struct setting<operation::route> {
  static constexpr std::array dimensions{sizes::rows, sizes::experts, sizes::active, sizes::bias, dimension{"negative", {0, 1}},
                                         gap,         offset,         special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], experts = b["experts"], active = (std::min)(b["active"], experts);

    const auto scores = detail::eighths(b, n, experts);
    const auto* const bias = b["bias"] > 0 ? detail::eighths(b, 1, experts).data : nullptr;
    return std::tuple{scores,
                      bias,
                      b["negative"] > 0 ? -0.5 : 0.25,
                      active,
                      b.template take<std::int32_t>(n * active),
                      b.wide_out(n * active),
                      b.wide_out(n * active)};
  }
};

template <>
struct setting<operation::route_backward> {
  static constexpr std::array dimensions{sizes::rows, sizes::experts, sizes::active, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], experts = b["experts"], active = (std::min)(b["active"], experts);

    const detail::routed<T> r(b, n, experts, active);
    return std::tuple{static_cast<const compute_t<T>*>(r.logits),
                      static_cast<const compute_t<T>*>(r.gates),
                      static_cast<const std::int32_t*>(r.chosen),
                      static_cast<const compute_t<T>*>(b.template in<compute_t<T>>(1, n * active).data),
                      0.25,
                      active,
                      b.template out<compute_t<T>>(n, experts)};
  }
};

template <>
struct setting<operation::group_pairs> {
  static constexpr std::array dimensions{sizes::rows, sizes::experts, sizes::active, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], experts = b["experts"], active = (std::min)(b["active"], experts);

    const index pairs = n * active;
    return std::tuple{b.template numbers<std::int32_t>(pairs, experts).data(),
                      pairs,
                      experts,
                      b.template take<std::int32_t>(experts + 1),
                      b.template take<std::int32_t>(pairs),
                      b.template take<std::int32_t>(pairs)};
  }
};

template <>
struct setting<operation::spread> {
  static constexpr std::array dimensions{sizes::rows, sizes::experts, sizes::active, sizes::features, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], experts = b["experts"], active = (std::min)(b["active"], experts);

    const detail::routed<T> r(b, n, experts, active);
    return std::tuple{b.in(n, b["cols"]), static_cast<const std::int32_t*>(r.source), active, b.out(n * active, b["cols"])};
  }
};

template <>
struct setting<operation::collect> {
  static constexpr std::array dimensions{
      sizes::rows, sizes::experts, sizes::active, sizes::features, dimension{"gates", {0, 1}}, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], experts = b["experts"], active = (std::min)(b["active"], experts);

    const detail::routed<T> r(b, n, experts, active);
    return std::tuple{b.in(n * active, b["cols"]), static_cast<const std::int32_t*>(r.place),
                      static_cast<const compute_t<T>*>(b["gates"] > 0 ? r.gates : nullptr), active, b.io(n, b["cols"])};
  }
};

template <>
struct setting<operation::collect_backward> {
  static constexpr std::array dimensions{sizes::rows, sizes::experts, sizes::active, sizes::features, sizes::in_place,
                                         gap,         offset,         special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const index n = b["rows"], experts = b["experts"], active = (std::min)(b["active"], experts);

    const detail::routed<T> r(b, n, experts, active);
    const auto y = b.io(n * active, b["cols"]);
    return std::tuple{b.in(n, b["cols"]),
                      matrix_view<const T>(y),
                      static_cast<const std::int32_t*>(r.place),
                      static_cast<const compute_t<T>*>(r.gates),
                      active,
                      b["in_place"] > 0 ? y : b.out(n * active, b["cols"]),
                      b.wide_io(n * active)};
  }
};

template <>
struct setting<operation::router_loss> {
  static constexpr std::array dimensions{sizes::sequences, sizes::length, sizes::experts, sizes::active, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const batch_layout& rows = b.layout();
    const index n = rows.rows(), experts = b["experts"], active = (std::min)(b["active"], experts);
    const detail::routed<T> r(b, n, experts, active);
    return std::tuple{b.template in<compute_t<T>>(n, experts, 2),
                      0.25,
                      static_cast<const std::int32_t*>(r.chosen),
                      active,
                      std::cref(rows),
                      router_loss_weights{0.3, 0.01},
                      b.wide_out(std::ssize(rows.sequences()))};
  }
};

template <>
struct setting<operation::router_loss_backward> {
  static constexpr std::array dimensions{sizes::sequences, sizes::length, sizes::experts, sizes::active, gap, offset, special};
  template <class T>
  static auto arguments(bench<T>& b) {
    const batch_layout& rows = b.layout();
    const index n = rows.rows(), experts = b["experts"], active = (std::min)(b["active"], experts);
    const detail::routed<T> r(b, n, experts, active);
    return std::tuple{b.template in<compute_t<T>>(n, experts, 2),
                      0.25,
                      static_cast<const std::int32_t*>(r.chosen),
                      active,
                      std::cref(rows),
                      router_loss_weights{0.3, 0.01},
                      compute_t<T>(0.7),
                      b.template io<compute_t<T>>(n, experts)};
  }
};

}  // namespace parity
GYRE_END
