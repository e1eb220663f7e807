// bf16: the upper half of an fp32 number. Memory holds it; arithmetic is done in fp32.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <gyre/core/types.hpp>

GYRE_BEGIN

namespace detail {

/// The bits of x as bf16: to nearest, ties to even; a NaN becomes 0x7fff, as CUDA's conversions have it.
constexpr std::uint16_t bf16_bits(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
/// x as fp32, where a number between two of fp32 becomes the one of them whose last bit is set: rounding that to bf16 gives what
/// rounding x itself would.
template <class A>
constexpr float float_to_odd(A x) {
  const float near = static_cast<float>(x);
  const A back = static_cast<A>(near);
  if (back == x || !(back == back) || back - back != A(0)) return near;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(near);
  if (back > A(0) ? back > x : back < A(0) && back < x) --bits;  // towards 0
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace detail

/// Has the size, the alignment and the bits of CUDA's __nv_bfloat16. Becomes a float by itself and exactly; is made from other numbers
/// explicitly, rounded once. It has no arithmetic: a place where something is rounded shows in the code.
struct alignas(2) bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  constexpr explicit bfloat16(float x) : bits(detail::bf16_bits(x)) {}
  template <class A>
  requires(std::is_arithmetic_v<A> && !std::same_as<A, float>) constexpr explicit bfloat16(A x) : bits(from(x)) {}
  static constexpr bfloat16 of_bits(std::uint16_t bits) {
    bfloat16 x{};
    x.bits = bits;
    return x;
  }
  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

 private:
  template <class A>
  static constexpr std::uint16_t from(A x) {
    if constexpr (std::is_integral_v<A>)
      return detail::bf16_bits(detail::float_to_odd(static_cast<double>(x)));  // whole numbers here are below 2^53
    else
      return detail::bf16_bits(detail::float_to_odd(x));
  }
};
static_assert(sizeof(bfloat16) == 2 && std::is_trivially_copyable_v<bfloat16> &&
              std::is_trivially_default_constructible_v<bfloat16>);

template <>
struct compute_of<bfloat16> {
  using type = float;
};

GYRE_END

template <>
struct std::numeric_limits<gyre::bfloat16> {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false, has_infinity = true,
                        has_quiet_NaN = true, has_signaling_NaN = false, is_iec559 = true, is_bounded = true, is_modulo = false;
  static constexpr int digits = 8, digits10 = 2, max_digits10 = 4, radix = 2, min_exponent = -125, max_exponent = 128;
  static constexpr gyre::bfloat16 min() noexcept { return gyre::bfloat16::of_bits(0x0080); }
  static constexpr gyre::bfloat16 max() noexcept { return gyre::bfloat16::of_bits(0x7f7f); }
  static constexpr gyre::bfloat16 lowest() noexcept { return gyre::bfloat16::of_bits(0xff7f); }
  static constexpr gyre::bfloat16 epsilon() noexcept { return gyre::bfloat16::of_bits(0x3c00); }  // 2^-7
  static constexpr gyre::bfloat16 infinity() noexcept { return gyre::bfloat16::of_bits(0x7f80); }
  static constexpr gyre::bfloat16 quiet_NaN() noexcept { return gyre::bfloat16::of_bits(0x7fc0); }
  static constexpr gyre::bfloat16 denorm_min() noexcept { return gyre::bfloat16::of_bits(0x0001); }
};
