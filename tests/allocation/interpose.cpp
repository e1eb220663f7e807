// Counts every way of taking memory: the program's own malloc, calloc, realloc, posix_memalign, aligned_alloc and mmap stand in
// front of the system's. Operator new alone would miss what Eigen takes. [no_sanitizer]
#include "interpose.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

std::atomic<long> count{0};

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// dlsym may itself call calloc before the system's is known: a small piece of static memory serves it.
alignas(64) char early[1 << 14];
std::size_t early_used = 0;

}  // namespace

namespace gyre_test {
long allocations() { return count.load(); }
}  // namespace gyre_test

extern "C" {

void* malloc(std::size_t bytes) {
  static auto* const real = next<void*(std::size_t)>("malloc");
  ++count;
  return real(bytes);
}
void* calloc(std::size_t items, std::size_t bytes) {
  static thread_local bool looking = false;
  static void* (*real)(std::size_t, std::size_t) = nullptr;
  if (real == nullptr) {
    if (looking) {
      void* p = early + early_used;
      early_used += (items * bytes + 63) / 64 * 64;
      return p;
    }
    looking = true;
    real = next<void*(std::size_t, std::size_t)>("calloc");
    looking = false;
  }
  ++count;
  return real(items, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  static auto* const real = next<void*(void*, std::size_t)>("realloc");
  ++count;
  return real(memory, bytes);
}
void free(void* memory) {
  static auto* const real = next<void(void*)>("free");
  if (memory >= early && memory < early + sizeof early) return;
  real(memory);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  static auto* const real = next<int(void**, std::size_t, std::size_t)>("posix_memalign");
  ++count;
  return real(out, alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  static auto* const real = next<void*(std::size_t, std::size_t)>("aligned_alloc");
  ++count;
  return real(alignment, bytes);
}
void* mmap(void* address, std::size_t length, int protection, int flags, int file, off_t offset) {
  static auto* const real = next<void*(void*, std::size_t, int, int, int, off_t)>("mmap");
  ++count;
  return real(address, length, protection, flags, file, offset);
}
}
