// dim3, float4 and their relatives for the host compiler: NVIDIA's own where its headers are found, otherwise these.
#pragma once

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#elif __has_include(<vector_types.h>) && __has_include(<vector_functions.h>)
#include <vector_functions.h>
#include <vector_types.h>
#else

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
  constexpr dim3(uint3 a) : x(a.x), y(a.y), z(a.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// Sizes and alignments as CUDA has them: a vector of two or four is aligned to its size, at most 16 bytes.
#define GYRE_SIMT_VECTOR_TYPES(T, prefix)                             \
  struct alignas(2 * sizeof(T)) prefix##2 {                           \
    T x, y;                                                           \
  };                                                                  \
  struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) prefix##4 { \
    T x, y, z, w;                                                     \
  };                                                                  \
  constexpr prefix##2 make_##prefix##2(T x, T y) { return {x, y}; }   \
  constexpr prefix##4 make_##prefix##4(T x, T y, T z, T w) { return {x, y, z, w}; }

GYRE_SIMT_VECTOR_TYPES(float, float)
GYRE_SIMT_VECTOR_TYPES(int, int)
GYRE_SIMT_VECTOR_TYPES(unsigned, uint)
GYRE_SIMT_VECTOR_TYPES(short, short)
GYRE_SIMT_VECTOR_TYPES(unsigned short, ushort)
GYRE_SIMT_VECTOR_TYPES(unsigned char, uchar)
#undef GYRE_SIMT_VECTOR_TYPES

struct alignas(16) double2 {
  double x, y;
};
constexpr double2 make_double2(double x, double y) { return {x, y}; }
struct float3 {
  float x, y, z;
};
constexpr float3 make_float3(float x, float y, float z) { return {x, y, z}; }
constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

#endif
