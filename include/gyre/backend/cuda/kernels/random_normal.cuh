// Random initial states: the very bits that the host's random streams make. All of core/normal_quantile.hpp's operations are
// exactly rounded on a GPU too, if no product fuses with a sum; so products that are added to something are __dmul_rn.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <gyre/backend/cuda/kernels/device.cuh>
#include <gyre/core/layout.hpp>
#include <gyre/core/random.hpp>

GYRE_BEGIN

namespace detail {

inline constexpr unsigned random_normal_threads = 128;
inline constexpr index random_normal_tile = 2 * random_normal_threads;  // features of a block

/// The polynomial with `coefficients` at r.
GYRE_DEVICE double unfused_polynomial(const double (&coefficients)[8], double r) {
  double y = coefficients[7];
  GYRE_UNROLL for (int n = 6; n >= 0; --n) y = __dmul_rn(y, r) + coefficients[n];
  return y;
}
GYRE_DEVICE double unfused_quotient(const rational_function& f, double r) {
  return unfused_polynomial(f.above, r) / unfused_polynomial(f.below, r);
}
/// ln p for p in [2^-1022, 1), step by step as in normal_quantile.
GYRE_DEVICE double unfused_log(double p) {
  const std::uint64_t moved = std::bit_cast<std::uint64_t>(p) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  const double n = std::bit_cast<double>(0x4330000000000000u | (moved >> 52)) - (0x1p52 + 1023);
  const double m = std::bit_cast<double>((moved & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
  const double t = (m - 1) / (m + 1), s = __dmul_rn(t, t);
  constexpr double odd[] = {1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  double series = 1.0 / 23;
  GYRE_UNROLL for (int k = 9; k >= 0; --k) series = __dmul_rn(series, s) + odd[k];
  const double log_m = 2 * t + __dmul_rn(2 * t, __dmul_rn(series, s));
  return __dmul_rn(n, 0x1.62e42feep-1) + (__dmul_rn(n, 0x1.a39ef35793c76p-33) + log_m);
}
/// What normal_quantile<1> gives.
GYRE_DEVICE double unfused_normal_quantile(double q, double tail) {
  if (std::fabs(q) <= quantile_centre) {
    constexpr rational_function f = quantile_of_centre();
    const double r = 0.180625 - __dmul_rn(q, q);
    return __dmul_rn(q, unfused_polynomial(f.above, r)) / unfused_polynomial(f.below, r);
  }
  constexpr rational_function near = quantile_of_tail(), far = quantile_of_far_tail();
  const double root = std::sqrt(-unfused_log(tail));
  return std::copysign(root > 5 ? unfused_quotient(far, root - 5) : unfused_quotient(near, root - 1.6), q);
}
/// What normal_from_bits<1> or truncated_normal_from_bits<1> gives.
GYRE_DEVICE double unfused_normal(std::uint64_t bits, double sigma, bool truncated) {
  const double centred = fraction_of_bits(bits) - 0.5, tail = 0.5 - std::fabs(centred);
  const double x = truncated ? unfused_normal_quantile(__dmul_rn(centred, mass_within_cuts),
                                                       mass_below_cut + __dmul_rn(tail, mass_within_cuts))
                             : unfused_normal_quantile(centred, tail);
  return __dmul_rn(x, sigma);
}

/// The sequence that row i belongs to: the last that begins at or before it, for empty ones come before those that begin there
/// too.
GYRE_DEVICE sequence_span sequence_of_row(const sequence_span* sequences, index count, index i) {
  index low = 0;
  for (index high = count; high - low > 1;) {
    const index middle = low + (high - low) / 2;
    (sequences[middle].begin <= i ? low : high) = middle;
  }
  return sequences[low];
}

/// y = sigma * normal numbers: `tiles` blocks for each row, a thread for each pair of features, whose bits come together.
template <class T>
GYRE_KERNEL void __launch_bounds__(random_normal_threads)
    random_normal_pairs(matrix_view<T> y, const sequence_span* sequences, index sequence_count, random_stream stream,
                        std::uint32_t step, double sigma, bool truncated, unsigned tiles) {
  const auto i = static_cast<index>(blockIdx.x / tiles);
  const unsigned pair = blockIdx.x % tiles * random_normal_threads + threadIdx.x;
  const sequence_span s = sequence_of_row(sequences, sequence_count, i);
  counter at{step, static_cast<std::uint32_t>(s.key), static_cast<std::uint32_t>(s.past + i - s.begin), 2 * pair};
  for (int k = 0; k < 2; ++k, ++at.feature) {
    const index j = static_cast<index>(at.feature);
    if (j < y.cols) y[i][j] = narrow<T>(static_cast<compute_t<T>>(unfused_normal(stream.bits(at), sigma, truncated)));
  }
}

}  // namespace detail

GYRE_END
