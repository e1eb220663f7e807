// Memory at one fixed alignment, the same in every translation unit whatever instruction set it was compiled for.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include <gyre/config.hpp>

GYRE_BEGIN

namespace detail {

inline constexpr std::size_t cache_line = 64;  // bytes; also the widest vector register

struct aligned_delete {
  void operator()(std::byte* memory) const noexcept { ::operator delete (memory, std::align_val_t{cache_line}); }
};
using aligned_memory = std::unique_ptr<std::byte, aligned_delete>;

/// Uninitialised memory aligned to a cache line. Throws std::bad_alloc.
inline aligned_memory allocate_aligned(std::size_t bytes) {
  return aligned_memory(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{cache_line})));
}

}  // namespace detail

GYRE_END
