// One vector register of float or double, as wide as the instruction set the translation unit is compiled for.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include <gyre/config.hpp>

#if (defined(__AVX512F__) || defined(__FMA__)) && !defined(GYRE_SCALAR_KERNELS)
#include <immintrin.h>
#endif

// The same conditions as those that choose the instruction set in the namespace's name: a layout never differs between units
// that share a namespace.
#if defined(GYRE_SCALAR_KERNELS)
#define GYRE_SIMD_BYTES 16
#elif defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#define GYRE_SIMD_BYTES 64
#elif defined(__AVX2__) && defined(__FMA__)
#define GYRE_SIMD_BYTES 32
#else
#define GYRE_SIMD_BYTES 16
#endif

#if defined(__GNUC__)
// Lane arithmetic holds nothing for the undefined-behaviour sanitizer, and checking it makes kernels compile ten times longer.
#define GYRE_LANEWISE __attribute__((no_sanitize("undefined")))
#define GYRE_INLINE GYRE_LANEWISE __attribute__((always_inline)) inline
#else
#define GYRE_LANEWISE
#define GYRE_INLINE inline
#endif

GYRE_BEGIN

namespace detail {

inline constexpr int simd_bytes = GYRE_SIMD_BYTES;

#if !defined(GYRE_SCALAR_KERNELS)

/// A vector of T. Arithmetic is lane by lane.
template <class T>
struct simd {
  static constexpr int width = simd_bytes / static_cast<int>(sizeof(T));
  using native [[gnu::vector_size(GYRE_SIMD_BYTES)]] = T;
  native v;

  /// No alignment is asked for.
  GYRE_INLINE static simd load(const T* from) {
    simd r;
    std::memcpy(&r.v, from, sizeof r.v);
    return r;
  }
  GYRE_INLINE void store(T* to) const { std::memcpy(to, &v, sizeof v); }
  GYRE_INLINE static simd broadcast(T x) { return {x - native{}}; }
  GYRE_INLINE static simd zero() { return {native{}}; }

  friend GYRE_INLINE simd operator+(simd a, simd b) { return {a.v + b.v}; }
  friend GYRE_INLINE simd operator-(simd a, simd b) { return {a.v - b.v}; }
  friend GYRE_INLINE simd operator*(simd a, simd b) { return {a.v * b.v}; }
  friend GYRE_INLINE simd operator/(simd a, simd b) { return {a.v / b.v}; }
  GYRE_INLINE T operator[](int lane) const { return v[lane]; }
};

/// a * b + c, with one rounding where the instruction set has it.
template <class T>
GYRE_INLINE simd<T> fma(simd<T> a, simd<T> b, simd<T> c) {
#if GYRE_SIMD_BYTES == 64
  if constexpr (sizeof(T) == 4)
    return {(typename simd<T>::native)_mm512_fmadd_ps((__m512)a.v, (__m512)b.v, (__m512)c.v)};
  else
    return {(typename simd<T>::native)_mm512_fmadd_pd((__m512d)a.v, (__m512d)b.v, (__m512d)c.v)};
#elif GYRE_SIMD_BYTES == 32
  if constexpr (sizeof(T) == 4)
    return {(typename simd<T>::native)_mm256_fmadd_ps((__m256)a.v, (__m256)b.v, (__m256)c.v)};
  else
    return {(typename simd<T>::native)_mm256_fmadd_pd((__m256d)a.v, (__m256d)b.v, (__m256d)c.v)};
#else
  return {a.v * b.v + c.v};
#endif
}

/// Of the lanes of a and b together, those that the sequence names. Written out for each width: in a pack inside the builtin, g++
/// and clang see the numbers, but nvcc's front end drops the dots.
template <class V, int... I>
GYRE_INLINE auto shuffled_lanes(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int n[] = {I...};
  constexpr int count = sizeof...(I);
  static_assert(count == 2 || count == 4 || count == 8 || count == 16);
  if constexpr (count == 2)
    return __builtin_shufflevector(a, b, n[0], n[1]);
  else if constexpr (count == 4)
    return __builtin_shufflevector(a, b, n[0], n[1], n[2], n[3]);
  else if constexpr (count == 8)
    return __builtin_shufflevector(a, b, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]);
  else
    return __builtin_shufflevector(a, b, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[13],
                                   n[14], n[15]);
}

#else  // plain loops, which a compiler may vectorise

template <class T>
struct simd {
  static constexpr int width = simd_bytes / static_cast<int>(sizeof(T));
  T v[std::size_t{width}];

  static simd load(const T* from) {
    simd r;
    std::memcpy(r.v, from, sizeof r.v);
    return r;
  }
  void store(T* to) const { std::memcpy(to, v, sizeof v); }
  static simd broadcast(T x) {
    simd r;
    for (T& lane : r.v) lane = x;
    return r;
  }
  static simd zero() { return broadcast(T(0)); }
  template <class F>
  static simd map(const simd& a, const simd& b, F f) {
    simd r;
    for (int i = 0; i < width; ++i) r.v[i] = f(a.v[i], b.v[i]);
    return r;
  }
  friend simd operator+(simd a, simd b) {
    return map(a, b, [](T x, T y) { return x + y; });
  }
  friend simd operator-(simd a, simd b) {
    return map(a, b, [](T x, T y) { return x - y; });
  }
  friend simd operator*(simd a, simd b) {
    return map(a, b, [](T x, T y) { return x * y; });
  }
  friend simd operator/(simd a, simd b) {
    return map(a, b, [](T x, T y) { return x / y; });
  }
  T operator[](int lane) const { return v[lane]; }
};

/// Written out where the processor has it: a compiler that fuses a product and a sum of its own accord does so in one place and
/// not in another.
template <class T>
simd<T> fma(simd<T> a, simd<T> b, simd<T> c) {
#if defined(__FMA__) || (defined(FP_FAST_FMA) && defined(FP_FAST_FMAF))
  for (int i = 0; i < simd<T>::width; ++i) c.v[i] = std::fma(a.v[i], b.v[i], c.v[i]);
  return c;
#else
  return a * b + c;
#endif
}

#endif

/// f of all lanes, halves first: lane i with lane i + width / 2, and so on. One order on every instruction set's width.
template <int Half, class T, class F>
GYRE_INLINE T fold_lanes(simd<T> x, F f) {
  if constexpr (Half == 0) {
    return x[0];
  } else {
#if !defined(GYRE_SCALAR_KERNELS)  // in registers: the way through memory costs several times the additions
    const simd<T> upper = [&]<int... I>(std::integer_sequence<int, I...>) {
      return simd<T>{shuffled_lanes(x.v, x.v, std::integer_sequence<int, (I + Half) % simd<T>::width...>())};
    }
    (std::make_integer_sequence<int, simd<T>::width>());
#else
    simd<T> upper = x;
    for (int i = 0; i < Half; ++i) upper.v[i] = x.v[i + Half];
#endif
    return fold_lanes<Half / 2>(f(x, upper), f);
  }
}
/// The sum of the lanes.
template <class T>
GYRE_INLINE T sum(simd<T> x) {
  return fold_lanes<simd<T>::width / 2>(x, [](simd<T> a, simd<T> b) { return a + b; });
}

}  // namespace detail

GYRE_END
