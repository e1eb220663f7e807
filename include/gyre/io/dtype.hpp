// Element types of stored tensors, under the names and in the order of the safetensors format.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include <gyre/core/bfloat16.hpp>

GYRE_BEGIN

static_assert(
    std::endian::native == std::endian::little,
    "gyre: files hold little-endian numbers and are read straight into memory, so a big-endian machine is not supported");

/// Every element type of the official safetensors package, in its order: files place larger types first.
enum class dtype : unsigned char {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64
};

namespace detail {
struct dtype_row {
  std::string_view name;
  int bits;
};
inline constexpr std::array<dtype_row, 22> dtype_table{
    {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
     {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
     {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
     {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}}};
}  // namespace detail

/// The type's name in files, for example "BF16".
constexpr std::string_view name_of(dtype type) { return detail::dtype_table[static_cast<std::size_t>(type)].name; }

/// Bits of one element; elements of fewer than 8 are packed.
constexpr int bits_of(dtype type) { return detail::dtype_table[static_cast<std::size_t>(type)].bits; }

/// The type of that name, if there is one.
constexpr std::optional<dtype> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < detail::dtype_table.size(); ++i)
    if (detail::dtype_table[i].name == name) return static_cast<dtype>(i);
  return std::nullopt;
}

/// The type that stores a C++ number bit for bit.
template <class T>
requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8) constexpr dtype dtype_of() {
  if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 4 ? dtype::f32 : dtype::f64;
  } else {
    constexpr std::array<dtype, 4> with_sign{dtype::i8, dtype::i16, dtype::i32, dtype::i64};
    constexpr std::array<dtype, 4> without_sign{dtype::u8, dtype::u16, dtype::u32, dtype::u64};
    constexpr int size = std::countr_zero(sizeof(T));
    return std::is_signed_v<T> ? with_sign[size] : without_sign[size];
  }
}

template <class T>
requires std::is_same_v<T, bfloat16>
constexpr dtype dtype_of() { return dtype::bf16; }

/// IEEE 754 binary16, given by its bits: exact.
constexpr float float_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu, mantissa = bits & 0x3FFu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, which binary32 holds exactly
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255u : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

/// The upper half of a binary32, given by its bits: exact.
constexpr float float_from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

GYRE_END
