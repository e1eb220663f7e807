// The inverse of the normal distribution function: one uniform number in, one normal number out.
//
// Results are the same bits on every compiler and instruction set, for initial weights and states must not depend on how a
// program was built. So only operations that IEEE 754 rounds exactly are used (the logarithm is written here: libm's differ),
// and products are kept from fusing with additions.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <gyre/config.hpp>

// g++ fuses products and sums unless the function forbids it, and such a function must not be inlined into one that does not;
// clang takes a pragma at the start of a body. Under -ffast-math, or clang's -ffp-contract=fast, equal bits are given up.
#if defined(__clang__)
#define GYRE_EXACT_FUNCTION
#define GYRE_EXACT_BODY _Pragma("clang fp contract(off)")
#elif defined(__GNUC__)
#define GYRE_EXACT_FUNCTION __attribute__((optimize("fp-contract=off"), noinline))
#define GYRE_EXACT_BODY
#else
#define GYRE_EXACT_FUNCTION
#define GYRE_EXACT_BODY
#endif

GYRE_BEGIN
namespace detail {

/// (bits / 2^12 + 1/2) / 2^52 in (0, 1): exact, through the bits of a number in [1, 2), as conversions do not vectorise.
constexpr double fraction_of_bits(std::uint64_t bits) {
  return (std::bit_cast<double>(0x3ff0000000000000u | (bits >> 12)) - 1) + 0x1p-53;
}

/// A quotient of polynomials; coefficients ascend.
struct rational_function {
  double above[8], below[8];
};
// Those of normal_quantile, in functions because kernels of a GPU do not see constants of a namespace: where |q| <= 0.425, of
// 0.180625 - q^2; then of sqrt(-ln tail) - 1.6; where that root is above 5, of it - 5.
constexpr double quantile_centre = 0.425;
constexpr rational_function quantile_of_centre() {
  return {{3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
           4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3},
          {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
           3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3}};
}
constexpr rational_function quantile_of_tail() {
  return {{1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
           1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
          {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
           1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9}};
}
constexpr rational_function quantile_of_far_tail() {
  return {{6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
           2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
          {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
           1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15}};
}
/// The mass of the normal distribution below -3, and between -3 and 3: Phi(-3) and 1 - 2 Phi(-3).
constexpr double mass_below_cut = 0.00134989803163009452665, mass_within_cuts = 0.997300203936739810947;

/// x[i] = the normal quantile of p, given as q[i] = p - 1/2 and tail[i] = min(p, 1 - p) >= 2^-1022, both to full relative
/// accuracy. Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988) 477-484: rational approximations with a relative
/// error of about 1e-16 before rounding, so that no refinement step is needed.
template <std::size_t Count>
GYRE_EXACT_FUNCTION inline void normal_quantile(const double* q, const double* tail, double* x) {
  GYRE_EXACT_BODY
  constexpr rational_function in_centre = quantile_of_centre(), in_tail = quantile_of_tail(), far_out = quantile_of_far_tail();
  const double(&a)[8] = in_centre.above, (&b)[8] = in_centre.below, (&c)[8] = in_tail.above, (&d)[8] = in_tail.below,
        (&e)[8] = far_out.above, (&f)[8] = far_out.below;
  constexpr double central = quantile_centre;

  // The central part, without branches and with polynomials written out, so that also g++ -O2 vectorises it. Lanes outside
  // compute 0 here; their places are collected.
  std::size_t place[Count], outside = 0;
  for (std::size_t i = 0; i < Count; ++i) {
    const double inside = std::fabs(q[i]) <= central ? q[i] : 0.0;
    const double r = 0.180625 - inside * inside;
    const double above = ((((((a[7] * r + a[6]) * r + a[5]) * r + a[4]) * r + a[3]) * r + a[2]) * r + a[1]) * r + a[0];
    const double below = ((((((b[7] * r + b[6]) * r + b[5]) * r + b[4]) * r + b[3]) * r + b[2]) * r + b[1]) * r + b[0];
    x[i] = inside * above / below;
  }
  for (std::size_t i = 0; i < Count; ++i) {
    place[outside] = i;
    outside += std::fabs(q[i]) > central;
  }

  constexpr std::size_t lanes = Count < 8 ? Count : 8;
  for (std::size_t first = 0; first < outside; first += lanes) {
    double p[lanes], root[lanes], value[lanes];
    for (std::size_t j = 0; j < lanes; ++j) p[j] = first + j < outside ? tail[place[first + j]] : 0.0625;
    for (std::size_t j = 0; j < lanes; ++j) {
      // p = 2^n m with m in [1/sqrt 2, sqrt 2): adding the distance of sqrt(1/2)'s bits to those of 1 carries larger
      // mantissas into the exponent. The exponent becomes a double through the low bits of 2^52.
      const std::uint64_t moved = std::bit_cast<std::uint64_t>(p[j]) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
      const double n = std::bit_cast<double>(0x4330000000000000u | (moved >> 52)) - (0x1p52 + 1023);
      const double m = std::bit_cast<double>((moved & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
      // ln m = 2 artanh t = 2 t (1 + s / 3 + s^2 / 5 + ...), s = t^2 <= 0.0295: the first term left out is below 2^-60.
      const double t = (m - 1) / (m + 1), s = t * t;
      const double high = ((((s * (1.0 / 23) + 1.0 / 21) * s + 1.0 / 19) * s + 1.0 / 17) * s + 1.0 / 15) * s + 1.0 / 13;
      const double series = (((((high * s + 1.0 / 11) * s + 1.0 / 9) * s + 1.0 / 7) * s + 1.0 / 5) * s + 1.0 / 3) * s;
      const double log_m = 2 * t + 2 * t * series;
      // ln 2 in two parts; the product of n with the first, which has 32 significant bits, is exact.
      const double log_p = n * 0x1.62e42feep-1 + (n * 0x1.a39ef35793c76p-33 + log_m);
      root[j] = std::sqrt(-log_p);
      const double r = root[j] - 1.6;
      const double above = ((((((c[7] * r + c[6]) * r + c[5]) * r + c[4]) * r + c[3]) * r + c[2]) * r + c[1]) * r + c[0];
      const double below = ((((((d[7] * r + d[6]) * r + d[5]) * r + d[4]) * r + d[3]) * r + d[2]) * r + d[1]) * r + d[0];
      value[j] = above / below;
    }
    for (std::size_t j = 0; j < lanes && first + j < outside; ++j) {
      if (root[j] > 5) {  // p < 1.4e-11
        const double r = root[j] - 5;
        const double above = ((((((e[7] * r + e[6]) * r + e[5]) * r + e[4]) * r + e[3]) * r + e[2]) * r + e[1]) * r + e[0];
        const double below = ((((((f[7] * r + f[6]) * r + f[5]) * r + f[4]) * r + f[3]) * r + f[2]) * r + f[1]) * r + f[0];
        value[j] = above / below;
      }
      x[place[first + j]] = std::copysign(value[j], q[place[first + j]]);
    }
  }
}

/// x[i] = sigma * normal quantile of fraction_of_bits(bits[i]).
template <std::size_t Count>
GYRE_EXACT_FUNCTION inline void normal_from_bits(const std::uint64_t* bits, double sigma, double* x) {
  GYRE_EXACT_BODY
  double q[Count], tail[Count];
  for (std::size_t i = 0; i < Count; ++i) {
    q[i] = fraction_of_bits(bits[i]) - 0.5;
    tail[i] = 0.5 - std::fabs(q[i]);  // both are exact: the fraction is a multiple of 2^-53
  }
  normal_quantile<Count>(q, tail, x);
  for (std::size_t i = 0; i < Count; ++i) x[i] *= sigma;
}

/// The same for the normal distribution cut at +-3: x[i] = sigma * quantile of cut + u (1 - 2 cut), cut the mass below -3.
template <std::size_t Count>
GYRE_EXACT_FUNCTION inline void truncated_normal_from_bits(const std::uint64_t* bits, double sigma, double* x) {
  GYRE_EXACT_BODY
  constexpr double cut = mass_below_cut, kept = mass_within_cuts;
  double q[Count], tail[Count];
  for (std::size_t i = 0; i < Count; ++i) {
    const double centred = fraction_of_bits(bits[i]) - 0.5;
    q[i] = centred * kept;
    tail[i] = cut + (0.5 - std::fabs(centred)) * kept;
  }
  normal_quantile<Count>(q, tail, x);
  // No value rounds beyond 3: the extreme one is 3 - 2^-53 / density(3) = 3 - 2.5e-14, and the quantile is good to 3e-15.
  for (std::size_t i = 0; i < Count; ++i) x[i] *= sigma;
}

}  // namespace detail
GYRE_END

#undef GYRE_EXACT_FUNCTION
#undef GYRE_EXACT_BODY
