// CUDA's arithmetic functions that the host's library lacks. Fast ones are computed exactly: a test's tolerance covers both.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }
// A product that no compiler fuses with a sum.
#if defined(__clang__)
inline double __dmul_rn(double x, double y) { _Pragma("clang fp contract(off)") return x * y; }
#else
__attribute__((optimize("fp-contract=off"), noinline)) inline double __dmul_rn(double x, double y) { return x * y; }
#endif
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

constexpr int __popc(unsigned x) { return std::popcount(x); }
constexpr int __popcll(unsigned long long x) { return std::popcount(x); }
constexpr int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
constexpr int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
constexpr int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
constexpr int __ffsll(long long x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1; }
constexpr unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
  return reversed;
}
constexpr unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<std::uint64_t>(a) * b >> 32); }
constexpr std::uint32_t __float_as_uint(float x) { return std::bit_cast<std::uint32_t>(x); }
constexpr int __float_as_int(float x) { return std::bit_cast<int>(x); }
constexpr float __uint_as_float(std::uint32_t x) { return std::bit_cast<float>(x); }
constexpr float __int_as_float(int x) { return std::bit_cast<float>(x); }

// Overloads rather than a template, as in CUDA: next to `using namespace std` a template would be ambiguous.
#define GYRE_SIMT_EXTREMES(T)                         \
  constexpr T min(T a, T b) { return b < a ? b : a; } \
  constexpr T max(T a, T b) { return a < b ? b : a; }
GYRE_SIMT_EXTREMES(int)
GYRE_SIMT_EXTREMES(unsigned)
GYRE_SIMT_EXTREMES(long)
GYRE_SIMT_EXTREMES(unsigned long)
GYRE_SIMT_EXTREMES(long long)
GYRE_SIMT_EXTREMES(unsigned long long)
#undef GYRE_SIMT_EXTREMES
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }

// Hints about caches change nothing here. Reports name the line that calls them.
#if defined(__clang__)
#define GYRE_SIMT_TRANSPARENT __attribute__((always_inline, nodebug)) inline
#else
#define GYRE_SIMT_TRANSPARENT __attribute__((always_inline, artificial)) inline
#endif
template <class T>
GYRE_SIMT_TRANSPARENT T __ldg(const T* p) {
  return *p;
}
template <class T>
GYRE_SIMT_TRANSPARENT T __ldcs(const T* p) {
  return *p;
}
template <class T>
GYRE_SIMT_TRANSPARENT T __ldcg(const T* p) {
  return *p;
}
template <class T>
GYRE_SIMT_TRANSPARENT void __stcs(T* p, T value) {
  *p = value;
}
template <class T>
GYRE_SIMT_TRANSPARENT void __stcg(T* p, T value) {
  *p = value;
}
