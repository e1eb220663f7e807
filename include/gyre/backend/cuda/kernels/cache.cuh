// The cache of keys and values: copies of rows into lanes, and within them.
#pragma once

#include <cstdint>

#include <gyre/backend/cuda/kernels/packs.cuh>

GYRE_BEGIN

namespace detail {

inline constexpr unsigned cache_threads = 256;
/// Scalars that a block copies, about: 8 packs of 16 bytes for each thread in fp32.
inline constexpr index cache_block = 8192;

/// Whether all of these bytes, addresses and distances, are multiples of a pack.
GYRE_DEVICE bool whole_packs(std::uintptr_t bytes) { return bytes % pack_bytes == 0; }
template <class T>
GYRE_DEVICE std::uintptr_t bytes_of(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}
template <class T>
GYRE_DEVICE std::uintptr_t bytes_of(index scalars) {
  return static_cast<std::uintptr_t>(scalars) * sizeof(T);
}

/// Consecutive rows of a batch, and where they go.
struct append_task {
  index row, count;
  void *keys, *values;
};

template <class T, class X>
GYRE_DEVICE void append_rows(const append_task& t, matrix_view<const T> from, void* to) {
  constexpr index taken = static_cast<index>(sizeof(X) / sizeof(T));
  const index across = from.cols / taken;
  X* const out = static_cast<X*>(to);
  for (index at = static_cast<index>(threadIdx.x); at < t.count * across; at += cache_threads)
    out[at] = reinterpret_cast<const X*>(from[t.row + at / across])[at % across];
}

/// One block for each task, blockIdx.y 0 for the keys and 1 for the values. Reads and writes every scalar once.
template <class T>
GYRE_KERNEL void __launch_bounds__(cache_threads)
    append_to_cache(matrix_view<const T> k, matrix_view<const T> v, const append_task* tasks) {
  const append_task t = tasks[blockIdx.x];
  const matrix_view<const T> from = blockIdx.y == 0 ? k : v;
  T* const to = static_cast<T*>(blockIdx.y == 0 ? t.keys : t.values);
  if (whole_packs(bytes_of(from.data) | bytes_of<T>(from.stride) | bytes_of<T>(from.cols) | bytes_of(to)))
    append_rows<T, pack<T, pack_width<T>>>(t, from, to);
  else
    append_rows<T, T>(t, from, to);
}

/// Consecutive scalars, and where their copies go: copy n, from 1, lies n * stride scalars behind them.
struct extend_task {
  void* from;
  index count, stride;
  int copies;
};

template <class T, class X>
GYRE_DEVICE void repeat(const extend_task& t) {
  constexpr index taken = static_cast<index>(sizeof(X) / sizeof(T));
  X* const from = static_cast<X*>(t.from);
  for (index at = static_cast<index>(threadIdx.x); at < t.count / taken; at += cache_threads) {
    const X x = from[at];
    for (int n = 1; n <= t.copies; ++n) from[at + static_cast<index>(n) * (t.stride / taken)] = x;
  }
}

/// One block for each task. Reads every scalar once, however many copies there are.
template <class T>
GYRE_KERNEL void __launch_bounds__(cache_threads) extend_cache(const extend_task* tasks) {
  const extend_task t = tasks[blockIdx.x];
  if (whole_packs(bytes_of(static_cast<const T*>(t.from)) | bytes_of<T>(t.count) | bytes_of<T>(t.stride)))
    repeat<T, pack<T, pack_width<T>>>(t);
  else
    repeat<T, T>(t);
}

}  // namespace detail

GYRE_END
