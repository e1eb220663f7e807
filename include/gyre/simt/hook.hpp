// What connects instrumented kernels with the interpreter: the observer of the launch that runs on this thread.
#pragma once

#include <cstddef>

// Outside of gyre's versioned namespace: instrumentation.cpp serves every copy of the interpreter in a program.
namespace gyre_simt_hook {

enum access_flags : unsigned { read = 0, write = 1, atomic = 2, range = 4 };

struct observer {
  void* state;
  /// Before a kernel reads or writes `bytes` bytes; `code`: the address after the access's call.
  void (*access)(void* state, const void* address, std::size_t bytes, unsigned flags, const void* code);
  /// Before an access whose address does not suit its type.
  void (*misaligned)(void* state, const void* address, std::size_t alignment, const char* file, unsigned line, unsigned column);
};

/// Null outside of kernels, and while a kernel is inside the interpreter.
inline thread_local constinit observer* current = nullptr;

}  // namespace gyre_simt_hook

/// Defined where instrumentation.cpp is linked, which is how a launch knows that it may expect accesses.
extern "C" __attribute__((weak)) void gyre_simt_instrumentation();
