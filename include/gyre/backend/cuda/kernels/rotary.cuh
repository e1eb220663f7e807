// Rotary encoding: pairs of features of every head are turned, in place.
#pragma once

#include <cstdint>

#include <gyre/backend/cuda/kernels/packs.cuh>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

inline constexpr unsigned rotary_threads = 256;
/// Heads that one thread turns by the same angles: as many loads are under way at once.
inline constexpr unsigned heads_of_thread = 4;

/// How a block's threads share rows: `parts` of them have a head, `heads` groups of parts a row, and each thread takes the part
/// of heads_of_thread heads, `heads` apart. blockIdx.y counts what is left of the heads. What a part misses of a long head, it
/// goes on with.
struct rotary_grid {
  unsigned parts, heads, rows;
};

/// Pairs that a thread turns at once: adjacent ones from one pack, half_split from two.
template <bool Packed, bool HalfSplit, class T>
inline constexpr int pairs_of_thread = !Packed     ? 1
                                       : HalfSplit ? pack_width<T>
                                                   : pack_width<T> / 2;

template <bool Packed, int Width, class T>
GYRE_DEVICE pack<T, Width> load_elements(const T* from) {
  if constexpr (Packed)
    return load_pack<Width>(from);
  else
    return load_each<Width>(from);
}
template <bool Packed, int Width, class T>
GYRE_DEVICE void store_elements(T* to, const pack<T, Width>& x) {
  if constexpr (Packed)
    store_pack(to, x);
  else
    GYRE_UNROLL for (int v = 0; v < Width; ++v) to[v] = x.at[v];
}

/// x = R(position) (x + bias), with `sign` -1 the transposed rotation. positions null: angles of position 0 for every row.
template <bool Packed, bool HalfSplit, class T, class S>
GYRE_KERNEL void __launch_bounds__(rotary_threads, 2)
    turn_pairs(matrix_view<T> x, const T* bias, const std::int32_t* positions, const S* table, index heads, index width,
               compute_t<T> sign, rotary_grid grid) {
  using C = compute_t<T>;
  constexpr int pairs = pairs_of_thread<Packed, HalfSplit, T>, packs = HalfSplit ? 2 : 1;
  constexpr int elements = 2 * pairs / packs;  // of a pack
  const unsigned part = threadIdx.x % grid.parts, group = threadIdx.x / grid.parts % grid.heads;
  const unsigned row_of_block = threadIdx.x / (grid.parts * grid.heads);
  const index row = static_cast<index>(blockIdx.x) * grid.rows + row_of_block;
  if (row_of_block >= grid.rows || row >= x.rows) return;
  const index half = width / 2, position = positions != nullptr ? positions[row] : 0;
  const index first_head = static_cast<index>(blockIdx.y) * grid.heads * heads_of_thread + group;
  for (index pair = static_cast<index>(part) * pairs; pair < half; pair += static_cast<index>(grid.parts) * pairs) {
    const pack<S, 2 * pairs> angles = load_elements<Packed, 2 * pairs>(table + (position * half + pair) * 2);
    const index in_head = HalfSplit ? pair : 2 * pair;
    pack<T, elements> loaded[heads_of_thread][packs];
    GYRE_UNROLL for (unsigned n = 0; n < heads_of_thread; ++n) {
      const index head = first_head + n * grid.heads;
      if (head >= heads) break;
      GYRE_UNROLL for (int m = 0; m < packs; ++m) loaded[n][m] =
          load_elements<Packed, elements>(x[row] + head * width + in_head + m * half);
    }
    GYRE_UNROLL for (unsigned n = 0; n < heads_of_thread; ++n) {
      const index head = first_head + n * grid.heads;
      if (head >= heads) break;
      C from[2 * pairs];  // as in memory
      GYRE_UNROLL for (int m = 0; m < packs; ++m) {
        GYRE_UNROLL for (int v = 0; v < elements; ++v) from[m * elements + v] = widen(loaded[n][m].at[v]);
        if (bias != nullptr) {
          const pack<T, elements> more = load_parameters<elements>(bias + head * width + in_head + m * half);
          GYRE_UNROLL for (int v = 0; v < elements; ++v) from[m * elements + v] += widen(more.at[v]);
        }
      }
      pack<T, 2 * pairs> to;
      GYRE_UNROLL for (int v = 0; v < pairs; ++v) {
        const int first = HalfSplit ? v : 2 * v, second = HalfSplit ? v + pairs : 2 * v + 1;
        const C c = widen(angles.at[2 * v]), s = sign * widen(angles.at[2 * v + 1]);
        to.at[first] = narrow<T>(from[first] * c - from[second] * s);
        to.at[second] = narrow<T>(from[first] * s + from[second] * c);
      }
      GYRE_UNROLL for (int m = 0; m < packs; ++m) {
        pack<T, elements> part_of;
        GYRE_UNROLL for (int v = 0; v < elements; ++v) part_of.at[v] = to.at[m * elements + v];
        store_elements<Packed, elements>(x[row] + head * width + in_head + m * half, part_of);
      }
    }
  }
}

}  // namespace detail

GYRE_END
