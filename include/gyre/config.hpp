// The macros of gyre: which kernels there are, and the inline namespace that tells differently compiled copies apart.
#pragma once

#include <gyre/version.hpp>

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ != 0
#error "gyre tells numbers that are not finite from others; -ffast-math, -Ofast and -ffinite-math-only remove those checks"
#endif

// The `cpu` backend's kernels are written in vectors of the GNU language extensions, which g++ and clang understand. Defined,
// GYRE_SCALAR_KERNELS chooses the same kernels in plain loops; for other compilers it is defined here.
#if !defined(__GNUC__) && !defined(GYRE_SCALAR_KERNELS)
#define GYRE_SCALAR_KERNELS
#endif

// Two translation units of one program may be compiled for different instruction sets, or one with scalar kernels. Types and
// functions then differ, so both are part of every symbol's name, beside the version: the linker keeps both copies.
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#define GYRE_INSTRUCTION_SET avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define GYRE_INSTRUCTION_SET avx2
#else
#define GYRE_INSTRUCTION_SET portable
#endif
#if defined(GYRE_SCALAR_KERNELS)
#define GYRE_KERNELS scalar
#else
#define GYRE_KERNELS vector
#endif

#define GYRE_JOIN_(major, minor, set, kernels) v##major##_##minor##_##set##_##kernels
#define GYRE_JOIN(major, minor, set, kernels) GYRE_JOIN_(major, minor, set, kernels)
#define GYRE_ABI GYRE_JOIN(GYRE_VERSION_MAJOR, GYRE_VERSION_MINOR, GYRE_INSTRUCTION_SET, GYRE_KERNELS)

// For what runs seldom and is made of many small calls (planning, messages): compiled small, which compiles faster too.
#if defined(__GNUC__)
#define GYRE_COLD __attribute__((cold))
#else
#define GYRE_COLD
#endif

// Opens and closes namespace gyre. Everything public lives in gyre::; what users must not touch is in gyre::detail.
#define GYRE_BEGIN \
  namespace gyre { \
  inline namespace GYRE_ABI {
#define GYRE_END \
  }              \
  }
