// bf16 as kernels spell it: NVIDIA's type where its header is found, otherwise a storage type with the same conversions.
#pragma once

#if defined(__CUDACC__) || __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#else

#include <bit>
#include <cstdint>

/// 16 bits: the upper half of an fp32 number. Storage only; kernels compute in fp32.
struct alignas(2) __nv_bfloat16 {
  std::uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

/// Round to nearest, ties to even; a NaN becomes 0x7fff, as on the device.
constexpr __nv_bfloat16 __float2bfloat16_rn(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
constexpr __nv_bfloat16 __float2bfloat16(float value) { return __float2bfloat16_rn(value); }
constexpr float __bfloat162float(__nv_bfloat16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }
constexpr __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)}; }
constexpr float __low2float(__nv_bfloat162 v) { return __bfloat162float(v.x); }
constexpr float __high2float(__nv_bfloat162 v) { return __bfloat162float(v.y); }
constexpr std::uint16_t __bfloat16_as_ushort(__nv_bfloat16 v) { return v.bits; }
constexpr __nv_bfloat16 __ushort_as_bfloat16(std::uint16_t bits) { return {bits}; }

#endif
