// The macros of gyre: the inline namespace that tells differently compiled copies of the library apart.
#pragma once

#include <gyre/version.hpp>

// Two translation units of one program may be compiled for different instruction sets. Types and functions then differ, so
// the instruction set is part of every symbol's name, beside the version: the linker keeps both copies.
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#define GYRE_INSTRUCTION_SET avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define GYRE_INSTRUCTION_SET avx2
#else
#define GYRE_INSTRUCTION_SET portable
#endif

#define GYRE_JOIN_(major, minor, set) v##major##_##minor##_##set
#define GYRE_JOIN(major, minor, set) GYRE_JOIN_(major, minor, set)
#define GYRE_ABI GYRE_JOIN(GYRE_VERSION_MAJOR, GYRE_VERSION_MINOR, GYRE_INSTRUCTION_SET)

// Opens and closes namespace gyre. Everything public lives in gyre::; what users must not touch is in gyre::detail.
#define GYRE_BEGIN namespace gyre { inline namespace GYRE_ABI {
#define GYRE_END } }
