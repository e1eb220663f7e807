// Several numbers of a row in one access: 16 bytes where they are aligned.
#pragma once

#include <bit>
#include <cstdint>

#include <gyre/backend/cuda/kernels/device.cuh>

GYRE_BEGIN

namespace detail {

/// The widest access that a thread has; a warp's then covers 512 bytes, 16 sectors.
inline constexpr unsigned pack_bytes = 16;
template <class T>
inline constexpr int pack_width = static_cast<int>(pack_bytes / sizeof(T));

template <class T, int Width>
struct alignas(Width * sizeof(T) < pack_bytes ? Width * sizeof(T) : pack_bytes) pack {
  T at[Width];
};

/// `from` is aligned to the pack.
template <int Width, class T>
GYRE_DEVICE pack<T, Width> load_pack(const T* from) {
  return *reinterpret_cast<const pack<T, Width>*>(from);
}
/// At once: of an assignment nvcc may make stores of single numbers, where they come straight from a load or are one of two
/// packs.
template <int Width, class T>
GYRE_DEVICE void store_pack(T* to, const pack<T, Width>& x) {
  if constexpr (sizeof(x) == sizeof(uint4))
    __stcg(reinterpret_cast<uint4*>(to), std::bit_cast<uint4>(x));
  else
    *reinterpret_cast<pack<T, Width>*>(to) = x;
}

template <int Width, class T>
GYRE_DEVICE pack<T, Width> load_each(const T* from) {
  pack<T, Width> x;
  GYRE_UNROLL for (int v = 0; v < Width; ++v) x.at[v] = from[v];
  return x;
}
inline bool at_pack(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % std::uintptr_t{pack_bytes} == 0; }
/// Of a tensor among parameters, which may begin anywhere: the same path for all threads.
template <int Width, class T>
GYRE_DEVICE pack<T, Width> load_parameters(const T* from) {
  if (Width > 1 && reinterpret_cast<std::uintptr_t>(from) % std::uintptr_t{pack_bytes} == 0) return load_pack<Width>(from);
  return load_each<Width>(from);
}

/// Whether every row of the matrices begins at a multiple of pack_bytes.
template <class... T>
bool rows_at_packs(matrix_view<T>... x) {
  return ((at_pack(x.data) && (x.rows <= 1 || x.stride % pack_width<T> == 0)) && ...);
}
/// Whether a row of `cols` elements of these matrices is made of whole packs.
template <class T, class... X>
bool whole_packs(index cols, matrix_view<X>... x) {
  return cols % pack_width<T> == 0 && rows_at_packs(x...);
}

/// x = from[0 .. N), in packs where `Wide`; 0 for elements from `left` on, which are not read.
template <bool Wide, class T, int N>
GYRE_DEVICE void load_lanes(const T* from, index left, compute_t<T> (&x)[N]) {
  constexpr int lanes = pack_width<T>;
  static_assert(N % lanes == 0);
  if (Wide && left >= N) {
    GYRE_UNROLL for (int i = 0; i < N; i += lanes) {
      const pack<T, lanes> p = *reinterpret_cast<const pack<T, lanes>*>(from + i);
      GYRE_UNROLL for (int j = 0; j < lanes; ++j) x[i + j] = widen(p.at[j]);
    }
  } else {
    GYRE_UNROLL for (int i = 0; i < N; ++i) x[i] = i < left ? widen(from[i]) : compute_t<T>(0);
  }
}
/// to[0 .. N) = x, of which elements from `left` on are not written.
template <bool Wide, class T, int N>
GYRE_DEVICE void store_lanes(const compute_t<T> (&x)[N], index left, T* to) {
  constexpr int lanes = pack_width<T>;
  static_assert(N % lanes == 0);
  if (Wide && left >= N) {
    GYRE_UNROLL for (int i = 0; i < N; i += lanes) {
      pack<T, lanes> p;
      GYRE_UNROLL for (int j = 0; j < lanes; ++j) p.at[j] = narrow<T>(x[i + j]);
      *reinterpret_cast<pack<T, lanes>*>(to + i) = p;
    }
  } else {
    GYRE_UNROLL for (int i = 0; i < N; ++i) if (i < left) to[i] = narrow<T>(x[i]);
  }
}

}  // namespace detail

GYRE_END
