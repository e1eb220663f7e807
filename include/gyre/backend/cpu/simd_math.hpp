// What operations other than products need of a vector: partial loads, maxima, selections, reductions and the exponential.
//
// A row's last, partial vector goes through the same arithmetic as the others, with lanes that are loaded as 0 and not stored.
// Products that are added are written as fma: the compiler must not choose to fuse them in one place and not in another.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>

#include <gyre/backend/cpu/simd.hpp>
#include <gyre/core/types.hpp>

// For lambdas, which take no `inline`.
#if defined(__GNUC__)
#define GYRE_INLINE_LAMBDA __attribute__((always_inline))
#else
#define GYRE_INLINE_LAMBDA
#endif

GYRE_BEGIN

namespace detail {

/// Lanes [0, count) from memory, the others 0; count in [0, width].
template <class T>
GYRE_INLINE simd<T> load_first(const T* from, index count) {
#if GYRE_SIMD_BYTES == 64
  if constexpr (sizeof(T) == 4)
    return {(typename simd<T>::native)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from)};
  else
    return {(typename simd<T>::native)_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), from)};
#else
  T lanes[simd<T>::width] = {};
  for (index i = 0; i < count; ++i) lanes[i] = from[i];
  return simd<T>::load(lanes);
#endif
}
template <class T>
GYRE_INLINE void store_first(simd<T> x, T* to, index count) {
#if GYRE_SIMD_BYTES == 64
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), (__m512)x.v);
  else
    _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1u << count) - 1), (__m512d)x.v);
#else
  T lanes[simd<T>::width];
  x.store(lanes);
  for (index i = 0; i < count; ++i) to[i] = lanes[i];
#endif
}

/// How a vector of a row is moved: whole, or its first `count` lanes.
template <class T>
struct whole_vector {
  static constexpr index count = simd<T>::width;
  GYRE_INLINE simd<T> load(const T* from) const { return simd<T>::load(from); }
  GYRE_INLINE simd<T> load_or(const T* from, T) const { return simd<T>::load(from); }
  GYRE_INLINE void store(simd<T> x, T* to) const { x.store(to); }
};
template <class T>
struct first_lanes {
  index count;
  GYRE_INLINE simd<T> load(const T* from) const { return load_first(from, count); }
  /// The lanes behind are `other`.
  GYRE_INLINE simd<T> load_or(const T* from, T other) const {
    T lanes[simd<T>::width];
    for (index i = 0; i < simd<T>::width; ++i) lanes[i] = i < count ? from[i] : other;
    return simd<T>::load(lanes);
  }
  GYRE_INLINE void store(simd<T> x, T* to) const { store_first(x, to, count); }
};

/// f(j, lanes) for every vector [j, j + width) of n elements.
template <class T, class F>
GYRE_INLINE void each_vector(index n, F f) {
  constexpr index width = simd<T>::width;
  index j = 0;
  for (; j + width <= n; j += width) f(j, whole_vector<T>{});
  if (j < n) f(j, first_lanes<T>{n - j});
}

/// sum = f(j, lanes, sum) over every vector of n elements, as four interleaved sums, so that an addition need not wait for the
/// one before. The order depends on n alone.
template <class T, class F>
GYRE_INLINE simd<T> accumulate_vectors(index n, F f) {
  constexpr index width = simd<T>::width;
  simd<T> s0 = simd<T>::zero(), s1 = s0, s2 = s0, s3 = s0;
  index j = 0;
  for (; j + width <= n; j += width) {  // the four change places instead of the loop being written out: it compiles faster
    const simd<T> next = f(j, whole_vector<T>{}, s0);
    s0 = s1, s1 = s2, s2 = s3, s3 = next;
  }
  if (j < n) s0 = f(j, first_lanes<T>{n - j}, s0);
  return (s0 + s1) + (s2 + s3);
}

#if !defined(GYRE_SCALAR_KERNELS)

/// Lane by lane x < limit ? a : b; b where either is NaN.
template <class T>
GYRE_INLINE simd<T> where_below(simd<T> x, simd<T> limit, simd<T> a, simd<T> b) {
  return {x.v < limit.v ? a.v : b.v};
}

/// The larger lanes; b where either is NaN.
template <class T>
GYRE_INLINE simd<T> maximum(simd<T> a, simd<T> b) {
  return {a.v > b.v ? a.v : b.v};
}

template <class T>
struct exponential_constants;
template <>
struct exponential_constants<float> {
  using integer = std::int32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr float lowest = -86.9f, highest = 89.0f;  // exp(lowest) is 1.8e-38, exp(highest) overflows
  static constexpr float ln2_high = 0x1.62e400p-1f, ln2_low = 0x1.7f7d1cp-20f;
  // exp(r) for |r| <= 0.3467, 1.0e-8 relative: interpolation of (exp(r) - 1 - r) / r^2 at Chebyshev points. From r^2 on.
  static constexpr float terms[] = {0.5f, 0x1.5554dcp-3f, 0x1.55551ap-5f, 0x1.120b90p-7f, 0x1.6d112cp-10f};
};
template <>
struct exponential_constants<double> {
  using integer = std::int64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr double lowest = -707.5, highest = 710.0;
  static constexpr double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
  // The same to 1.7e-17.
  static constexpr double terms[] = {0.5,
                                     0x1.5555555555556p-3,
                                     0x1.5555555553d56p-5,
                                     0x1.11111111109afp-7,
                                     0x1.6c16c17890eb4p-10,
                                     0x1.a01a01a7c73c0p-13,
                                     0x1.a019b8f9792eep-16,
                                     0x1.71de0da24602dp-19,
                                     0x1.28919ccaf9211p-22,
                                     0x1.af38c67fbb53ep-26};
};

/// exp of each lane, to 2 units in the last place; 0 below exponential_constants::lowest (so that no lane is ever denormal,
/// which is slow), infinity and NaN as usual.
template <class T>
GYRE_INLINE simd<T> exp(simd<T> x) {
  using c = exponential_constants<T>;
  using integer = typename c::integer;
  using integers [[gnu::vector_size(GYRE_SIMD_BYTES)]] = integer;
  using reals = typename simd<T>::native;
  const simd<T> lowest = simd<T>::broadcast(c::lowest), one = simd<T>::broadcast(T(1));
  const simd<T> inside = maximum(lowest, where_below(simd<T>::broadcast(c::highest), x, simd<T>::broadcast(c::highest), x));
  // x = n ln 2 + r. n + bias is positive, so cutting off its fraction rounds; lanes that are NaN take any n.
  const simd<T> shifted = fma(inside, simd<T>::broadcast(T(1.442695040888963407)), simd<T>::broadcast(T(c::bias) + T(0.5)));
  integers exponent;
  simd<T> n;
  if constexpr (sizeof(T) == 8 && simd_bytes < 64) {  // these have no conversion between double and 64-bit integers
    using shorts [[gnu::vector_size(GYRE_SIMD_BYTES / 2)]] = std::int32_t;
    const shorts cut = __builtin_convertvector(shifted.v, shorts);
    exponent = __builtin_convertvector(cut, integers);
    n.v = __builtin_convertvector(cut, reals);
  } else {
    exponent = __builtin_convertvector(shifted.v, integers);
    n.v = __builtin_convertvector(exponent, reals);
  }
  n = n - simd<T>::broadcast(T(c::bias));
  simd<T> r = fma(n, simd<T>::broadcast(-c::ln2_high), inside);
  r = fma(n, simd<T>::broadcast(-c::ln2_low), r);
  constexpr std::size_t last = std::size(c::terms) - 1;
  simd<T> p = simd<T>::broadcast(c::terms[last]);
  [&]<std::size_t... I>(std::index_sequence<I...>) GYRE_INLINE_LAMBDA {  // a loop would stay one at -O2
    ((p = fma(p, r, simd<T>::broadcast(c::terms[last - 1 - I]))), ...);
  }
  (std::make_index_sequence<last>());
  p = fma(fma(p, r, one), r, one);
  // 2 p times 2^(n - 1): 2^n itself may be too large.
  const integers bits = (exponent - 1) << c::mantissa;
  simd<T> scale;
  std::memcpy(&scale.v, &bits, sizeof bits);
  return where_below(x, lowest, simd<T>::zero(), (p + p) * scale);
}

#else

template <class T>
simd<T> where_below(simd<T> x, simd<T> limit, simd<T> a, simd<T> b) {
  for (int i = 0; i < simd<T>::width; ++i) b.v[i] = x.v[i] < limit.v[i] ? a.v[i] : b.v[i];
  return b;
}
template <class T>
simd<T> maximum(simd<T> a, simd<T> b) {
  return simd<T>::map(a, b, [](T x, T y) { return x > y ? x : y; });
}
template <class T>
simd<T> exp(simd<T> x) {
  for (T& lane : x.v) lane = std::exp(lane);
  return x;
}

#endif

/// The largest lane, NaN left out where another lane is not.
template <class T>
GYRE_INLINE T largest(simd<T> x) {
  return fold_lanes<simd<T>::width / 2>(x, [](simd<T> a, simd<T> b) { return maximum(a, b); });
}

/// Lane by lane 1 / (1 + exp(-x)).
template <class T>
GYRE_INLINE simd<T> logistic(simd<T> x) {
  const simd<T> one = simd<T>::broadcast(T(1));
  return one / (one + exp(simd<T>::zero() - x));
}

}  // namespace detail

GYRE_END
