// The one header of kernels: the same source compiles with nvcc for a GPU, and with g++ or clang for the interpreter.
//
//   template <int = 0>
//   GYRE_KERNEL void scale(float* x, int n, float by) {
//     const int i = blockIdx.x * blockDim.x + threadIdx.x;
//     if (i < n) x[i] *= by;
//   }
//   gyre::simt::launch(scale<>, (n + 255) / 256, 256, 0, stream, x, n, 0.5f);
//
// Inside, kernels are written as for CUDA. See docs/simt.md.
#pragma once

#include <gyre/simt/async_copy.hpp>
#include <gyre/simt/bfloat16.hpp>
#include <gyre/simt/tensor_core.hpp>
#include <gyre/simt/vector_types.hpp>

#if defined(__CUDACC__)
#include <gyre/simt/cuda.hpp>
#else
#include <gyre/simt/atomics.hpp>
#include <gyre/simt/intrinsics.hpp>
#include <gyre/simt/launch.hpp>
#include <gyre/simt/math.hpp>

#define GYRE_KERNEL
#define GYRE_DEVICE inline
#define GYRE_UNROLL
#if !defined(__launch_bounds__)
#define __launch_bounds__(...)
#endif
#endif
