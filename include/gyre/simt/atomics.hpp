// CUDA's atomic functions. They are atomic among the threads of a launch, which take turns on one thread of the host.
#pragma once

#include <type_traits>

#include <gyre/simt/intrinsics.hpp>

namespace gyre_simt {
namespace detail {

// Replaces *address by change(*address) and returns what was there.
template <class T, class Change>
GYRE_SIMT_ENGINE T atomically(T* address, const char* name, const position& at, const Change& change) {
  before_atomic(address, sizeof(T), name, at);
  const T before = *address;
  *address = change(before);
  return before;
}
// Signed sums wrap around, as on the device.
template <class T>
GYRE_SIMT_ENGINE constexpr T wrapping_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

}  // namespace detail
}  // namespace gyre_simt

#define GYRE_SIMT_ATOMIC(T, function, change)                                                                               \
  GYRE_SIMT_ENGINE inline T function(T* address, T value, GYRE_SIMT_POSITION) {                                             \
    return ::gyre_simt::detail::atomically(address, #function, at, [=]([[maybe_unused]] T before) -> T { return change; }); \
  }
#define GYRE_SIMT_INTEGER_ATOMICS(T)                                                                       \
  GYRE_SIMT_ATOMIC(T, atomicAdd, ::gyre_simt::detail::wrapping_sum(before, value))                         \
  GYRE_SIMT_ATOMIC(T, atomicMin, value < before ? value : before)                                          \
  GYRE_SIMT_ATOMIC(T, atomicMax, value > before ? value : before)                                          \
  GYRE_SIMT_ATOMIC(T, atomicAnd, before& value)                                                            \
  GYRE_SIMT_ATOMIC(T, atomicOr, before | value)                                                            \
  GYRE_SIMT_ATOMIC(T, atomicXor, before ^ value)                                                           \
  GYRE_SIMT_ATOMIC(T, atomicExch, value)                                                                   \
  GYRE_SIMT_ENGINE inline T atomicCAS(T* address, T expected, T value, GYRE_SIMT_POSITION) {               \
    return ::gyre_simt::detail::atomically(address, "atomicCAS", at,                                       \
                                           [=](T before) { return before == expected ? value : before; }); \
  }
GYRE_SIMT_INTEGER_ATOMICS(int)
GYRE_SIMT_INTEGER_ATOMICS(unsigned)
GYRE_SIMT_INTEGER_ATOMICS(unsigned long long)
#undef GYRE_SIMT_INTEGER_ATOMICS
GYRE_SIMT_ATOMIC(int, atomicSub, ::gyre_simt::detail::wrapping_sum(before, ::gyre_simt::detail::wrapping_sum(~value, 1)))
GYRE_SIMT_ATOMIC(unsigned, atomicSub, before - value)
GYRE_SIMT_ATOMIC(float, atomicAdd, before + value)
GYRE_SIMT_ATOMIC(double, atomicAdd, before + value)
GYRE_SIMT_ATOMIC(float, atomicExch, value)
GYRE_SIMT_ATOMIC(unsigned, atomicInc, before >= value ? 0u : before + 1)
GYRE_SIMT_ATOMIC(unsigned, atomicDec, before == 0 || before > value ? value : before - 1)
#undef GYRE_SIMT_ATOMIC
