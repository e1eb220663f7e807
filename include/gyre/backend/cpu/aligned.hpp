// Memory at fixed alignments, the same in every translation unit whatever instruction set it was compiled for.
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstddef>
#include <memory>
#include <new>

#include <gyre/config.hpp>

GYRE_BEGIN

namespace detail {

inline constexpr std::size_t cache_line = 64;                   // bytes; also the widest vector register
inline constexpr std::size_t huge_page = std::size_t{1} << 21;  // bytes

/// Activations, packed weights and caches are streamed, a few megabytes at a time: with pages of 4 KiB a translation is missing
/// every 64 lines. Where the system gives huge pages to those who ask, large memory asks; elsewhere it is as good as before.
constexpr std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes >= huge_page ? huge_page : cache_line};
}
/// Uninitialised memory. Throws std::bad_alloc.
inline std::byte* take_memory(std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(::operator new(bytes, alignment_of(bytes)));
#if defined(__linux__)
  if (bytes >= huge_page) static_cast<void>(::madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE));
#endif
  return memory;
}
inline void give_memory_back(std::byte* memory, std::size_t bytes) noexcept { ::operator delete(memory, alignment_of(bytes)); }

struct aligned_delete {
  std::size_t bytes = 0;
  void operator()(std::byte* memory) const noexcept { give_memory_back(memory, bytes); }
};
using aligned_memory = std::unique_ptr<std::byte, aligned_delete>;

inline aligned_memory allocate_aligned(std::size_t bytes) { return aligned_memory(take_memory(bytes), aligned_delete{bytes}); }

}  // namespace detail

GYRE_END
