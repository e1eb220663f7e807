// RoSE, the rotary encoding of depth (attention_mixtures, section 3).
#pragma once

#include <array>
#include <cmath>

#include <gyre/core/types.hpp>

GYRE_BEGIN

/// none: depth is not encoded. forward: pair i of P turns by base^(-i / P) l at step l. split: the first half of the pairs turns
/// forward, the second half by the steps that remain, D - 1 - l; the paper has such a reverse half, its details are ours.
///
/// Eight bytes wide, so that options with such a member have no padding: clang 14 reads members behind padding of a template
/// argument wrongly.
enum class depth_encoding : std::int64_t { none, forward, split };

/// Cosine and sine of every pair of a vector of that width, at step `step` of `steps`: (width / 2, 2). Angles are computed in
/// double.
template <class T, int Width>
std::array<T, std::size_t{Width}> depth_angles(depth_encoding encoding, double base, int step, int steps) {
  constexpr int pairs = Width / 2;
  std::array<T, std::size_t{Width}> angles;
  const int turning = encoding == depth_encoding::split ? pairs / 2 : pairs;
  for (int i = 0; i < pairs; ++i) {
    const int place = i % turning, depth = i < turning ? step : steps - 1 - step;
    const double angle = std::pow(base, -static_cast<double>(place) / turning) * depth;
    const auto at = static_cast<std::size_t>(2 * i);
    angles[at] = T(static_cast<real_t<T>>(std::cos(angle))), angles[at + 1] = T(static_cast<real_t<T>>(std::sin(angle)));
  }
  return angles;
}

GYRE_END
