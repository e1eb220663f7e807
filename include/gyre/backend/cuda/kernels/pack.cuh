// Accesses of 16 bytes: a pack is as many consecutive scalars as fit.
#pragma once

#include <cstdint>

#include <gyre/backend/cuda/kernels/device.cuh>

GYRE_BEGIN

namespace detail {

inline constexpr std::size_t widest_access = 16;  // bytes of a thread

template <class T>
inline constexpr int pack_lanes = static_cast<int>(widest_access / sizeof(T));

template <class T, int N = pack_lanes<T>>
struct alignas(N * sizeof(T)) pack {
  T at[N];
};

/// Whether packs may begin at p.
template <class T>
bool at_pack(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p) % widest_access == 0;
}
/// Whether every row of x begins with a pack.
template <class T>
bool rows_at_packs(matrix_view<T> x) {
  return at_pack(x.data) && (x.rows <= 1 || x.stride % pack_lanes<T> == 0);
}

/// x = from[0 .. N), in packs where `Wide`; 0 for elements from `left` on, which are not read.
template <bool Wide, class T, int N>
GYRE_DEVICE void load_lanes(const T* from, index left, compute_t<T> (&x)[N]) {
  constexpr int lanes = pack_lanes<T>;
  static_assert(N % lanes == 0);
  if (Wide && left >= N) {
    GYRE_UNROLL for (int i = 0; i < N; i += lanes) {
      const pack<T> p = *reinterpret_cast<const pack<T>*>(from + i);
      GYRE_UNROLL for (int j = 0; j < lanes; ++j) x[i + j] = widen(p.at[j]);
    }
  } else {
    GYRE_UNROLL for (int i = 0; i < N; ++i) x[i] = i < left ? widen(from[i]) : compute_t<T>(0);
  }
}
/// to[0 .. N) = x, of which elements from `left` on are not written.
template <bool Wide, class T, int N>
GYRE_DEVICE void store_lanes(const compute_t<T> (&x)[N], index left, T* to) {
  constexpr int lanes = pack_lanes<T>;
  static_assert(N % lanes == 0);
  if (Wide && left >= N) {
    GYRE_UNROLL for (int i = 0; i < N; i += lanes) {
      pack<T> p;
      GYRE_UNROLL for (int j = 0; j < lanes; ++j) p.at[j] = narrow<T>(x[i + j]);
      *reinterpret_cast<pack<T>*>(to + i) = p;
    }
  } else {
    GYRE_UNROLL for (int i = 0; i < N; ++i) if (i < left) to[i] = narrow<T>(x[i]);
  }
}

}  // namespace detail

GYRE_END
