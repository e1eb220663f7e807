// Asynchronous copies from global to shared memory, in the spelling of CUDA's <cuda_pipeline.h>.
#pragma once

#include <cstddef>

#if defined(__CUDACC__)
#include <cuda_pipeline.h>
#else
#include <gyre/simt/intrinsics.hpp>

/// Copies 4, 8 or 16 bytes, aligned to their number, of which the last `zeroed` are zeros. They may land at any time until the
/// thread has waited for them, and other threads may read them after a barrier behind that.
GYRE_SIMT_ENGINE inline void __pipeline_memcpy_async(void* shared, const void* global, std::size_t bytes,
                                                     std::size_t zeroed = 0, GYRE_SIMT_POSITION) {
  ::gyre_simt::detail::copy_async(shared, global, bytes, zeroed, at);
}
/// Closes a group of the thread's copies.
GYRE_SIMT_ENGINE inline void __pipeline_commit() { ::gyre_simt::detail::commit_async(); }
/// Waits for all of the thread's groups but the `newest` last ones.
GYRE_SIMT_ENGINE inline void __pipeline_wait_prior(std::size_t newest, GYRE_SIMT_POSITION) {
  ::gyre_simt::detail::await_async(newest, at);
}
#endif
