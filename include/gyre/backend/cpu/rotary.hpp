// Rotary encoding of the `cpu` backend.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include <gyre/backend/cpu/simd_math.hpp>
#include <gyre/backend/cpu/split.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

#if !defined(GYRE_SCALAR_KERNELS)

/// Of the 2 x width lanes of a and b together, every second one, from lane Odd on.
template <int Odd, class T>
GYRE_INLINE simd<T> every_second(simd<T> a, simd<T> b) {
  return [&]<int... I>(std::integer_sequence<int, I...>) GYRE_INLINE_LAMBDA {
    return simd<T>{shuffled_lanes(a.v, b.v, std::integer_sequence<int, (2 * I + Odd)...>())};
  }
  (std::make_integer_sequence<int, simd<T>::width>());
}
/// Lane i becomes lane i | 1 if Odd, i & ~1 otherwise.
template <int Odd, class T>
GYRE_INLINE simd<T> repeat_second(simd<T> a) {
  return [&]<int... I>(std::integer_sequence<int, I...>) GYRE_INLINE_LAMBDA {
    return simd<T>{shuffled_lanes(a.v, a.v, std::integer_sequence<int, (I / 2 * 2 + Odd)...>())};
  }
  (std::make_integer_sequence<int, simd<T>::width>());
}
/// Lanes 2 i and 2 i + 1 change places.
template <class T>
GYRE_INLINE simd<T> swap_pairs(simd<T> a) {
  return [&]<int... I>(std::integer_sequence<int, I...>) GYRE_INLINE_LAMBDA {
    return simd<T>{shuffled_lanes(a.v, a.v, std::integer_sequence<int, (I ^ 1)...>())};
  }
  (std::make_integer_sequence<int, simd<T>::width>());
}

#else

template <int Odd, class T>
simd<T> every_second(simd<T> a, simd<T> b) {
  simd<T> r;
  for (int i = 0; i < simd<T>::width; ++i) {
    const int from = 2 * i + Odd;
    r.v[i] = from < simd<T>::width ? a.v[from] : b.v[from - simd<T>::width];
  }
  return r;
}
template <int Odd, class T>
simd<T> repeat_second(simd<T> a) {
  simd<T> r;
  for (int i = 0; i < simd<T>::width; ++i) r.v[i] = a.v[i / 2 * 2 + Odd];
  return r;
}
template <class T>
simd<T> swap_pairs(simd<T> a) {
  simd<T> r;
  for (int i = 0; i < simd<T>::width; ++i) r.v[i] = a.v[i ^ 1];
  return r;
}

#endif

/// Turns one row. Features that one vector of angles concerns are done in every head before the next angles are read.
template <class T>
void rotate_row_adjacent(T* x, const T* bias, const T* table, rotary_shape shape, T sign) {
  alignas(64) T signs[simd<T>::width];
  for (int i = 0; i < simd<T>::width; ++i) signs[i] = i % 2 == 0 ? -sign : sign;
  const simd<T> alternating = simd<T>::load(signs);
  each_vector<T>(shape.width, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
    const simd<T> angles = lanes.load(table + j), c = repeat_second<0>(angles), s = alternating * repeat_second<1>(angles);
    for (index h = 0; h < shape.heads; ++h) {
      const index at = h * shape.width + j;
      simd<T> v = lanes.load(x + at);
      if (bias != nullptr) v = v + lanes.load(bias + at);
      lanes.store(fma(v, c, swap_pairs(v) * s), x + at);
    }
  });
}

template <class T>
void rotate_row_half_split(T* x, const T* bias, const T* table, rotary_shape shape, T sign) {
  constexpr index width = simd<T>::width;
  const index half = shape.width / 2;
  const simd<T> turn = simd<T>::broadcast(sign);
  each_vector<T>(half, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
    const index entries = 2 * (half - j);  // scalars of the table from here on
    const simd<T> a = entries >= width ? simd<T>::load(table + 2 * j) : load_first(table + 2 * j, entries);
    const simd<T> b = entries >= 2 * width ? simd<T>::load(table + 2 * j + width)
                      : entries > width    ? load_first(table + 2 * j + width, entries - width)
                                           : simd<T>::zero();
    const simd<T> c = every_second<0>(a, b), s = turn * every_second<1>(a, b);
    for (index h = 0; h < shape.heads; ++h) {
      const index at = h * shape.width + j;
      simd<T> first = lanes.load(x + at), second = lanes.load(x + at + half);
      if (bias != nullptr) first = first + lanes.load(bias + at), second = second + lanes.load(bias + at + half);
      lanes.store(fma(first, c, simd<T>::zero() - second * s), x + at);
      lanes.store(fma(first, s, second * c), x + at + half);
    }
  });
}

/// x = R(position) (x + bias), sign -1: with the transposed rotation; bias null: none.
template <class T>
void rotary(thread_pool& pool, matrix_view<T> x, const T* bias, std::span<const std::int32_t> positions, const T* table,
            rotary_shape shape, T sign) {
  for_rows(pool, x.rows, 2 * x.cols, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      const T* angles = table + positions[static_cast<std::size_t>(i)] * (shape.width / 2) * 2;
      if (shape.pairs == pairing::adjacent)
        rotate_row_adjacent(x[i], bias, angles, shape, sign);
      else
        rotate_row_half_split(x[i], bias, angles, shape, sign);
    }
  });
}

}  // namespace detail

GYRE_END
