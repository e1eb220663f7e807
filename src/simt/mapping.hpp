// Pages from the operating system, and the address sanitizer's marks on them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include <gyre/simt/memory.hpp>

// The address sanitizer's functions, null where a program is not linked with it. The interpreter asks at run time: kernels may
// be compiled with the sanitizer when it is not.
extern "C" {
__attribute__((weak)) void __asan_poison_memory_region(const volatile void*, std::size_t);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void*, std::size_t);
__attribute__((weak)) void __sanitizer_start_switch_fiber(void**, const void*, std::size_t);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void*, const void**, std::size_t*);
}

namespace gyre_simt {
namespace detail {

inline constexpr unsigned char gap_pattern = 0xA5;                 // what a gap holds; a change shows a stray write
inline constexpr unsigned char garbage = 0xFF;                     // fresh memory: NaN for floating point, -1 for integers
inline constexpr std::size_t filled_bytes = std::size_t{1} << 26;  // larger objects stay sparse and hold zeros

// Any access is an error from now on, or is one no longer. Without the address sanitizer the table of objects decides alone. The
// sanitizer's own memory is an eighth of what is marked, so sparse memory is left alone.
inline void poison(const void* begin, std::size_t bytes) {
  if (__asan_poison_memory_region != nullptr && bytes <= 2 * filled_bytes) __asan_poison_memory_region(begin, bytes);
}
inline void unpoison(const void* begin, std::size_t bytes) {
  if (__asan_unpoison_memory_region != nullptr && bytes <= 2 * filled_bytes) __asan_unpoison_memory_region(begin, bytes);
}

// Zeroed pages that take memory only once they are touched, so that a mapping may be far larger than the machine.
class mapping {
 public:
  mapping() = default;
  explicit mapping(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(got);
  }
  mapping(mapping&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  mapping& operator=(mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~mapping() {
    if (data_ == nullptr) return;
    unpoison(data_, bytes_);  // the addresses may be given out again
    munmap(data_, bytes_);
  }
  std::byte* release() { return std::exchange(data_, nullptr); }
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

constexpr std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

}  // namespace detail
}  // namespace gyre_simt
