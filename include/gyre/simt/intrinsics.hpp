// CUDA's built-in functions for barriers, warps, fences and loads, in CUDA's own spelling.
#pragma once

#include <type_traits>

#include <gyre/simt/runtime.hpp>

#define GYRE_SIMT_POSITION ::gyre_simt::position at = {}

namespace gyre_simt::detail {

template <class R, class T>
GYRE_SIMT_ENGINE R exchange(warp_call call, unsigned mask, T value, int argument, int width, const position& at) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16, "a warp exchanges values of at most 16 bytes");
  R result;
  with_warp(call, mask, &value, sizeof(T), &result, sizeof(R), argument, width, at);
  return result;
}

}  // namespace gyre_simt::detail

// ---- barriers of the block

GYRE_SIMT_ENGINE inline void __syncthreads(GYRE_SIMT_POSITION) { ::gyre_simt::detail::block_barrier("__syncthreads", 0, at); }
GYRE_SIMT_ENGINE inline int __syncthreads_count(int predicate, GYRE_SIMT_POSITION) {
  return ::gyre_simt::detail::block_barrier("__syncthreads_count", predicate, at).held;
}
GYRE_SIMT_ENGINE inline int __syncthreads_and(int predicate, GYRE_SIMT_POSITION) {
  const ::gyre_simt::detail::votes v = ::gyre_simt::detail::block_barrier("__syncthreads_and", predicate, at);
  return v.held == v.all;
}
GYRE_SIMT_ENGINE inline int __syncthreads_or(int predicate, GYRE_SIMT_POSITION) {
  return ::gyre_simt::detail::block_barrier("__syncthreads_or", predicate, at).held != 0;
}

// ---- warps

GYRE_SIMT_ENGINE inline void __syncwarp(unsigned mask = ~0u, GYRE_SIMT_POSITION) {
  ::gyre_simt::detail::exchange<int>(::gyre_simt::detail::warp_call::synchronise, mask, 0, 0, 32, at);
}
template <class T>
GYRE_SIMT_ENGINE T __shfl_sync(unsigned mask, T value, int source, int width = 32, GYRE_SIMT_POSITION) {
  return ::gyre_simt::detail::exchange<T>(::gyre_simt::detail::warp_call::shuffle, mask, value, source, width, at);
}
template <class T>
GYRE_SIMT_ENGINE T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32, GYRE_SIMT_POSITION) {
  return ::gyre_simt::detail::exchange<T>(::gyre_simt::detail::warp_call::shuffle_up, mask, value, static_cast<int>(distance),
                                          width, at);
}
template <class T>
GYRE_SIMT_ENGINE T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32, GYRE_SIMT_POSITION) {
  return ::gyre_simt::detail::exchange<T>(::gyre_simt::detail::warp_call::shuffle_down, mask, value, static_cast<int>(distance),
                                          width, at);
}
template <class T>
GYRE_SIMT_ENGINE T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, GYRE_SIMT_POSITION) {
  return ::gyre_simt::detail::exchange<T>(::gyre_simt::detail::warp_call::shuffle_xor, mask, value, lanes, width, at);
}
GYRE_SIMT_ENGINE inline unsigned __ballot_sync(unsigned mask, int predicate, GYRE_SIMT_POSITION) {
  return ::gyre_simt::detail::exchange<unsigned>(::gyre_simt::detail::warp_call::ballot, mask, 0, predicate != 0, 32, at);
}
GYRE_SIMT_ENGINE inline int __any_sync(unsigned mask, int predicate, GYRE_SIMT_POSITION) {
  return ::gyre_simt::detail::exchange<int>(::gyre_simt::detail::warp_call::any, mask, 0, predicate != 0, 32, at);
}
GYRE_SIMT_ENGINE inline int __all_sync(unsigned mask, int predicate, GYRE_SIMT_POSITION) {
  return ::gyre_simt::detail::exchange<int>(::gyre_simt::detail::warp_call::all, mask, 0, predicate != 0, 32, at);
}
template <class T>
GYRE_SIMT_ENGINE unsigned __match_any_sync(unsigned mask, T value, GYRE_SIMT_POSITION) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return ::gyre_simt::detail::exchange<unsigned>(::gyre_simt::detail::warp_call::match_any, mask, value, 0, 32, at);
}
#define GYRE_SIMT_REDUCTION(function, call, T)                                                             \
  GYRE_SIMT_ENGINE inline T function(unsigned mask, T value, GYRE_SIMT_POSITION) {                         \
    return ::gyre_simt::detail::exchange<T>(::gyre_simt::detail::warp_call::call, mask, value, 0, 32, at); \
  }
GYRE_SIMT_REDUCTION(__reduce_add_sync, reduce_add, unsigned)
GYRE_SIMT_REDUCTION(__reduce_add_sync, reduce_add, int)
GYRE_SIMT_REDUCTION(__reduce_min_sync, reduce_min_unsigned, unsigned)
GYRE_SIMT_REDUCTION(__reduce_min_sync, reduce_min_int, int)
GYRE_SIMT_REDUCTION(__reduce_max_sync, reduce_max_unsigned, unsigned)
GYRE_SIMT_REDUCTION(__reduce_max_sync, reduce_max_int, int)
GYRE_SIMT_REDUCTION(__reduce_and_sync, reduce_and, unsigned)
GYRE_SIMT_REDUCTION(__reduce_or_sync, reduce_or, unsigned)
GYRE_SIMT_REDUCTION(__reduce_xor_sync, reduce_xor, unsigned)
#undef GYRE_SIMT_REDUCTION

// ---- fences: they order memory together with atomics (docs/simt.md)

GYRE_SIMT_ENGINE inline void __threadfence() { ::gyre_simt::detail::fence(); }
GYRE_SIMT_ENGINE inline void __threadfence_block() { ::gyre_simt::detail::fence(); }
GYRE_SIMT_ENGINE inline void __threadfence_system() { ::gyre_simt::detail::fence(); }
