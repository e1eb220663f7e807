// The same names for nvcc.
#pragma once

#if defined(__CUDACC__)

#include <cuda_runtime.h>

#include <cstddef>

#include <gyre/core/error.hpp>

#define GYRE_KERNEL __global__
#define GYRE_DEVICE __device__ __forceinline__
#define GYRE_UNROLL _Pragma("unroll")

namespace gyre_simt::detail {
template <class T>
struct shared_type {
  using type = T;
};
}  // namespace gyre_simt::detail

#define GYRE_SHARED(T, name) __shared__ typename ::gyre_simt::detail::shared_type<T>::type name
#define GYRE_DYNAMIC_SHARED(T, name)                                          \
  extern __shared__ __align__(128) unsigned char gyre_dynamic_shared_bytes[]; \
  T* const name = reinterpret_cast<T*>(gyre_dynamic_shared_bytes)

GYRE_BEGIN
namespace simt {

using namespace ::gyre_simt;

using stream = cudaStream_t;

namespace detail {
inline void require_success(cudaError_t status, const char* call, dim3 grid, dim3 block, std::size_t shared_bytes) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // the user's next question for the last error is not about this one
  fail("simt: ", call, " of a kernel with grid (", grid.x, ", ", grid.y, ", ", grid.z, "), block (", block.x, ", ", block.y,
       ", ", block.z, ") and ", shared_bytes, " bytes of dynamic shared memory: ", cudaGetErrorName(status), " (",
       cudaGetErrorString(status), ")",
       status == cudaErrorNoKernelImageForDevice
           ? "; the program has no code for this GPU: add its architecture to CMAKE_CUDA_ARCHITECTURES"
           : "");
}
}  // namespace detail

/// Starts `kernel` in `s`. A grid of size 0 starts nothing. Throws gyre::error if CUDA refuses the launch; what goes wrong
/// while the kernel runs shows when the stream is synchronised.
template <class... P, class... Arguments>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes, stream s, Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (shared_bytes > 48 * 1024)  // more needs to be asked for
    detail::require_success(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
                            "cudaFuncSetAttribute", grid, block, shared_bytes);
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = grid;
  configuration.blockDim = block;
  configuration.dynamicSmemBytes = shared_bytes;
  configuration.stream = s;
  detail::require_success(cudaLaunchKernelEx(&configuration, kernel, static_cast<P>(arguments)...), "the launch", grid, block,
                          shared_bytes);
}

}  // namespace simt
GYRE_END

#endif
