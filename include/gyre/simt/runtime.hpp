// What kernels call of the interpreter. Defined in the library gyre::simt, so that kernels compile quickly and the interpreter
// itself is never instrumented. It lies outside of namespace gyre's versions: it may be compiled for another instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include <gyre/simt/position.hpp>
#include <gyre/simt/vector_types.hpp>

inline thread_local constinit uint3 threadIdx{0, 0, 0}, blockIdx{0, 0, 0};
inline thread_local constinit dim3 blockDim{1, 1, 1}, gridDim{1, 1, 1};
inline constexpr int warpSize = 32;

namespace gyre_simt::detail {

enum class warp_call : unsigned {
  synchronise,
  shuffle,
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  ballot,
  any,
  all,
  match_any,
  reduce_add,  // of unsigned; the bits of a signed sum are the same
  reduce_min_int,
  reduce_min_unsigned,
  reduce_max_int,
  reduce_max_unsigned,
  reduce_and,
  reduce_or,
  reduce_xor,
  load_matrix,
  load_matrix_transposed,
  multiply_bf16,
  count
};

/// Brings `given` to the operation, waits until all lanes of `mask` have come, and takes `result`. At most 64 bytes each.
void with_warp(warp_call call, unsigned mask, const void* given, unsigned bytes, void* result, unsigned result_bytes,
               int argument, int width, const position& at);

/// A barrier of the block. How many predicates held, of how many.
struct votes {
  int held, all;
};
votes block_barrier(const char* name, int predicate, const position& at);

void fence();
/// Checks an atomic access that is about to happen.
void before_atomic(void* address, std::size_t bytes, const char* name, const position& at);

/// The shared object `key` of the running block; the first thread to come reserves it.
void* shared_at(const void* key, const char* name, std::size_t bytes, std::size_t alignment, const position& at);
void* dynamic_shared(const position& at);

void copy_async(void* to, const void* from, std::size_t bytes, std::size_t zeroed, const position& at);
void commit_async();
void await_async(std::size_t newest, const position& at);
/// Checks that a lane may read `bytes` bytes for an operation of its warp.
void before_warp_read(const void* address, std::size_t bytes, std::size_t alignment, const char* name, const position& at);

template <class T>
struct shared_type {
  using type = T;
};
template <class T>
GYRE_SIMT_ENGINE inline T& shared_object(const void* key, const char* name, const position& at) {
  return *static_cast<T*>(shared_at(key, name, sizeof(T), alignof(T), at));
}

}  // namespace gyre_simt::detail

// GYRE_SHARED(float[32], sums): a variable that the threads of a block share. The type is only known by name, for arrays.
#define GYRE_SHARED(T, name)                                                                                                 \
  [[maybe_unused]] static char gyre_shared_key_##name;                                                                       \
  typename ::gyre_simt::detail::shared_type<T>::type& name =                                                                 \
      ::gyre_simt::detail::shared_object<typename ::gyre_simt::detail::shared_type<T>::type>(&gyre_shared_key_##name, #name, \
                                                                                             ::gyre_simt::position())
// GYRE_DYNAMIC_SHARED(float, tile): a pointer to the shared memory whose size the launch gives.
#define GYRE_DYNAMIC_SHARED(T, name) \
  T* const name = static_cast<T*>(::gyre_simt::detail::dynamic_shared(::gyre_simt::position()))
