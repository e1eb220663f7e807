// The encoding of depth in a layer: turns queries and keys by the step that runs.
#pragma once

#include <algorithm>

#include <gyre/core/context.hpp>
#include <gyre/policy/depth_encoding.hpp>

GYRE_BEGIN

namespace detail {

/// The step that runs, from 0, and how many were asked for. Outside a recurrence there is one step.
struct depth_place {
  int step = 0, steps = 1;
};
template <class B, class P>
depth_place depth_of(const context<B, P>& c) {
  return c.step < 0 ? depth_place{} : depth_place{c.step, (std::max)(c.steps, c.step + 1)};
}

/// Turns the heads of x(tokens, heads * Width) by RoSE at this step, or back.
template <int Width, class B, class P, class T>
void turn_by_depth(context<B, P>& c, depth_encoding encoding, double base, matrix_view<T> x, bool back) {
  if (encoding == depth_encoding::none) return;
  c.step_matters = true;
  if (encoding == depth_encoding::split) c.steps_matter = true;
  const depth_place at = depth_of(c);
  const auto angles = depth_angles<statistic_t<P>, Width>(encoding, base, at.step, at.steps);
  c.device.rotate(x, angles.data(), rotary_shape{x.cols / Width, Width, pairing::adjacent}, back);
}

}  // namespace detail

GYRE_END
