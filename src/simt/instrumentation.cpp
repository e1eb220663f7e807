// What the instrumentation of -fsanitize=thread and -fsanitize=alignment calls, told to the interpreter instead of a sanitizer.
// gyre::simt_race compiles this file into the program, which must then be linked without these sanitizers.
#include <cstddef>
#include <cstdint>
#include <gyre/simt/hook.hpp>
#include <gyre/simt/position.hpp>

#define GYRE_CALL extern "C" __attribute__((weak)) GYRE_SIMT_ENGINE

GYRE_CALL void gyre_simt_instrumentation() {}

namespace {

namespace hook = gyre_simt_hook;

// While the interpreter looks at an access it is not observed itself.
GYRE_SIMT_ENGINE inline void tell(const void* address, std::size_t bytes, unsigned flags, const void* code) {
  hook::observer* const observer = hook::current;
  if (observer == nullptr) return;
  hook::current = nullptr;
  observer->access(observer->state, address, bytes, flags, code);
  hook::current = observer;
}

}  // namespace

#define GYRE_RETURN_ADDRESS __builtin_return_address(0)
#define GYRE_ACCESS(name, bytes, flags) \
  GYRE_CALL void name(void* address) { tell(address, bytes, flags, GYRE_RETURN_ADDRESS); }
#define GYRE_ACCESSES(bytes)                                              \
  GYRE_ACCESS(__tsan_read##bytes, bytes, hook::read)                      \
  GYRE_ACCESS(__tsan_write##bytes, bytes, hook::write)                    \
  GYRE_ACCESS(__tsan_unaligned_read##bytes, bytes, hook::read)            \
  GYRE_ACCESS(__tsan_unaligned_write##bytes, bytes, hook::write)          \
  GYRE_ACCESS(__tsan_volatile_read##bytes, bytes, hook::read)             \
  GYRE_ACCESS(__tsan_volatile_write##bytes, bytes, hook::write)           \
  GYRE_ACCESS(__tsan_unaligned_volatile_read##bytes, bytes, hook::read)   \
  GYRE_ACCESS(__tsan_unaligned_volatile_write##bytes, bytes, hook::write) \
  GYRE_CALL void __tsan_read_write##bytes(void* address) {                \
    tell(address, bytes, hook::read, GYRE_RETURN_ADDRESS);                \
    tell(address, bytes, hook::write, GYRE_RETURN_ADDRESS);               \
  }                                                                       \
  GYRE_CALL void __tsan_unaligned_read_write##bytes(void* address) {      \
    tell(address, bytes, hook::read, GYRE_RETURN_ADDRESS);                \
    tell(address, bytes, hook::write, GYRE_RETURN_ADDRESS);               \
  }
GYRE_ACCESSES(1)
GYRE_ACCESSES(2)
GYRE_ACCESSES(4)
GYRE_ACCESSES(8)
GYRE_ACCESSES(16)

GYRE_CALL void __tsan_read_range(void* address, std::size_t bytes) {
  tell(address, bytes, hook::read | hook::range, GYRE_RETURN_ADDRESS);
}
GYRE_CALL void __tsan_write_range(void* address, std::size_t bytes) {
  tell(address, bytes, hook::write | hook::range, GYRE_RETURN_ADDRESS);
}

// Nothing to do: calls, construction and destruction are not followed.
GYRE_CALL void __tsan_init() {}
GYRE_CALL void __tsan_func_entry(void*) {}
GYRE_CALL void __tsan_func_exit() {}
GYRE_CALL void __tsan_vptr_update(void**, void*) {}
GYRE_CALL void __tsan_vptr_read(void**) {}
GYRE_CALL void __tsan_ignore_thread_begin() {}
GYRE_CALL void __tsan_ignore_thread_end() {}

// ---- copies and fills: calls of the C library (--wrap, see gyre::simt_race), and of newer compilers' own names

extern "C" void* __real_memcpy(void*, const void*, std::size_t);
extern "C" void* __real_memmove(void*, const void*, std::size_t);
extern "C" void* __real_memset(void*, int, std::size_t);

#define GYRE_COPY(name, real)                                           \
  GYRE_CALL void* name(void* to, const void* from, std::size_t bytes) { \
    tell(from, bytes, hook::read | hook::range, GYRE_RETURN_ADDRESS);   \
    tell(to, bytes, hook::write | hook::range, GYRE_RETURN_ADDRESS);    \
    return real(to, from, bytes);                                       \
  }
#define GYRE_FILL(name)                                              \
  GYRE_CALL void* name(void* to, int value, std::size_t bytes) {     \
    tell(to, bytes, hook::write | hook::range, GYRE_RETURN_ADDRESS); \
    return __real_memset(to, value, bytes);                          \
  }
GYRE_COPY(__wrap_memcpy, __real_memcpy)
GYRE_COPY(__tsan_memcpy, __real_memcpy)
GYRE_COPY(__wrap_memmove, __real_memmove)
GYRE_COPY(__tsan_memmove, __real_memmove)
GYRE_FILL(__wrap_memset)
GYRE_FILL(__tsan_memset)

// ---- the host's atomics: code of the same translation units that runs outside of kernels uses them

#define GYRE_TELL(bytes) tell(const_cast<const T*>(p), bytes, hook::write | hook::atomic, GYRE_RETURN_ADDRESS)
#define GYRE_ATOMIC_UPDATE(bits, operation)                                                            \
  GYRE_CALL T##bits __tsan_atomic##bits##_fetch_##operation(volatile T##bits* p, T##bits value, int) { \
    using T = T##bits;                                                                                 \
    GYRE_TELL(bits / 8);                                                                               \
    return __atomic_fetch_##operation(p, value, __ATOMIC_SEQ_CST);                                     \
  }
#define GYRE_ATOMICS(bits)                                                                                                     \
  GYRE_CALL T##bits __tsan_atomic##bits##_load(const volatile T##bits* p, int) {                                               \
    tell(const_cast<const T##bits*>(p), bits / 8, hook::read | hook::atomic, GYRE_RETURN_ADDRESS);                             \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                               \
  }                                                                                                                            \
  GYRE_CALL void __tsan_atomic##bits##_store(volatile T##bits* p, T##bits value, int) {                                        \
    using T = T##bits;                                                                                                         \
    GYRE_TELL(bits / 8);                                                                                                       \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                                              \
  }                                                                                                                            \
  GYRE_CALL T##bits __tsan_atomic##bits##_exchange(volatile T##bits* p, T##bits value, int) {                                  \
    using T = T##bits;                                                                                                         \
    GYRE_TELL(bits / 8);                                                                                                       \
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                                                    \
  }                                                                                                                            \
  GYRE_CALL int __tsan_atomic##bits##_compare_exchange_strong(volatile T##bits* p, T##bits* expected, T##bits value, int,      \
                                                              int) {                                                           \
    using T = T##bits;                                                                                                         \
    GYRE_TELL(bits / 8);                                                                                                       \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                         \
  }                                                                                                                            \
  GYRE_CALL int __tsan_atomic##bits##_compare_exchange_weak(volatile T##bits* p, T##bits* expected, T##bits value, int, int) { \
    using T = T##bits;                                                                                                         \
    GYRE_TELL(bits / 8);                                                                                                       \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                         \
  }                                                                                                                            \
  GYRE_CALL T##bits __tsan_atomic##bits##_compare_exchange_val(volatile T##bits* p, T##bits expected, T##bits value, int,      \
                                                               int) {                                                          \
    using T = T##bits;                                                                                                         \
    GYRE_TELL(bits / 8);                                                                                                       \
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                               \
    return expected;                                                                                                           \
  }                                                                                                                            \
  GYRE_ATOMIC_UPDATE(bits, add)                                                                                                \
  GYRE_ATOMIC_UPDATE(bits, sub)                                                                                                \
  GYRE_ATOMIC_UPDATE(bits, and)                                                                                                \
  GYRE_ATOMIC_UPDATE(bits, or)                                                                                                 \
  GYRE_ATOMIC_UPDATE(bits, xor)                                                                                                \
  GYRE_ATOMIC_UPDATE(bits, nand)

using T8 = std::uint8_t;
using T16 = std::uint16_t;
using T32 = std::uint32_t;
using T64 = std::uint64_t;
GYRE_ATOMICS(8)
GYRE_ATOMICS(16)
GYRE_ATOMICS(32)
GYRE_ATOMICS(64)
GYRE_CALL void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
GYRE_CALL void __tsan_atomic_signal_fence(int) {}

// ---- misaligned addresses

namespace {

// The beginning of what the compiler describes such an access with.
struct mismatch {
  const char* file;
  std::uint32_t line, column;
  const void* type;
  unsigned char log_alignment, kind;
};

GYRE_SIMT_ENGINE inline void tell_misaligned(const mismatch* data, std::uintptr_t address) {
  hook::observer* const observer = hook::current;
  const std::size_t alignment = std::size_t{1} << data->log_alignment;
  if (observer == nullptr || address % alignment == 0) return;
  hook::current = nullptr;
  observer->misaligned(observer->state, reinterpret_cast<const void*>(address), alignment, data->file, data->line,
                       data->column);
  hook::current = observer;
}

}  // namespace

GYRE_CALL void __ubsan_handle_type_mismatch_v1(void* data, std::uintptr_t address) {
  tell_misaligned(static_cast<const mismatch*>(data), address);
}
GYRE_CALL void __ubsan_handle_type_mismatch_v1_abort(void* data, std::uintptr_t address) {
  tell_misaligned(static_cast<const mismatch*>(data), address);
}
GYRE_CALL void __ubsan_handle_alignment_assumption(void*, std::uintptr_t, std::uintptr_t, std::uintptr_t) {}
GYRE_CALL void __ubsan_handle_alignment_assumption_abort(void*, std::uintptr_t, std::uintptr_t, std::uintptr_t) {}
