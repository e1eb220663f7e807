// The angle of a point, lane by lane: what huginn_adam's update is made of.
#pragma once

#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include <gyre/backend/cpu/simd_math.hpp>

GYRE_BEGIN

namespace detail {

/// atan(q) = q + q^3 (terms[0] + terms[1] q^2 + ...) for |q| <= tan(pi / 8): interpolation of (atan(q) / q - 1) / q^2 at
/// Chebyshev points, 2.5e-9 and 5e-18 relative.
template <class T>
struct arctangent_constants;
template <>
struct arctangent_constants<float> {
  static constexpr float terms[] = {-0x1.555554p-2f, 0x1.99973p-3f, -0x1.242036p-3f, 0x1.b81030p-4f, -0x1.08455ap-4f};
};
template <>
struct arctangent_constants<double> {
  static constexpr double terms[] = {-0x1.5555555555555p-2, 0x1.999999999934cp-3, -0x1.24924924361fep-3, 0x1.c71c71853d61ep-4,
                                     -0x1.745d0b28a329ap-4, 0x1.3b126305e1a32p-4, -0x1.10fa77ab9c6d5p-4, 0x1.dfe64915a2d96p-5,
                                     -0x1.a0999a3df6ef8p-5, 0x1.4162b9f87c419p-5, -0x1.3a31a292c6ad9p-6};
};

/// atan2(y, x) for x > 0, to 4 units in the last place; NaN for NaN.
template <class T>
GYRE_INLINE simd<T> angle(simd<T> y, simd<T> x) {
  using v = simd<T>;
  constexpr double pi = 3.14159265358979323846, eighth = 0.41421356237309504880;  // tan(pi / 8)
  const v zero = v::zero(), size = maximum(y, zero - y);
  // The angle of the smaller over the larger is in [0, pi / 4]; of the upper half of that, pi / 4 is split off.
  const v smaller = where_below(size, x, size, x), larger = maximum(x, size);
  // Two infinities have the angle of two ones.
  const v largest = v::broadcast((std::numeric_limits<T>::max)()), one = v::broadcast(T(1));
  const v low = where_below(largest, smaller, one, smaller), high = where_below(largest, smaller, one, larger);
  const v edge = v::broadcast(T(eighth)) * high;
  const v q = where_below(edge, low, low - high, low) / where_below(edge, low, low + high, high), q2 = q * q;
  using c = arctangent_constants<T>;
  constexpr std::size_t last = std::size(c::terms) - 1;
  v p = v::broadcast(c::terms[last]);
  [&]<std::size_t... I>(std::index_sequence<I...>) GYRE_INLINE_LAMBDA {  // a loop would stay one at -O2
    ((p = fma(p, q2, v::broadcast(c::terms[last - 1 - I]))), ...);
  }
  (std::make_index_sequence<last>());
  const v part = fma(p * q2, q, q) + where_below(edge, low, v::broadcast(T(pi / 4)), zero);
  const v whole = where_below(x, size, v::broadcast(T(pi / 2)) - part, part);
  return where_below(y, zero, zero - whole, whole);
}

}  // namespace detail

GYRE_END
