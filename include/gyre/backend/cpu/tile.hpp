// The innermost kernel of all matrix products: a tile of the result held in registers while the inner dimension passes by.
#pragma once

#include <cstddef>
#include <utility>

#include <gyre/backend/cpu/aligned.hpp>
#include <gyre/backend/cpu/simd.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

namespace detail {

/// Shape of the register tile: `rows` rows of A by `cols` columns of B. Two vectors wide; as high as the registers allow.
template <class T>
struct tile_shape {
  static constexpr int vectors = 2;
  static constexpr int cols = vectors * simd<T>::width;
  static constexpr int rows = simd_bytes == 64 ? 14 : 6;
  static constexpr int low_rows = simd_bytes == 64 ? 8 : 6;  // heights up to this exist one by one, beside the full height
};

/// How A(row, k) of a product lies in memory.
enum class tile_source {
  direct,      // consecutive k are adjacent, rows a stride apart
  transposed,  // consecutive rows are adjacent, k a stride apart
};

enum class cache_use { write, read_soon, read_later };

/// Asks for the cache lines at `from`, sizeof...(Line) of them.
template <cache_use Use, std::size_t... Line>
GYRE_INLINE void cache_fetch(const void* from, std::index_sequence<Line...>) {
#if defined(__GNUC__)
  (__builtin_prefetch(static_cast<const char*>(from) + Line * cache_line, Use == cache_use::write,
                      Use == cache_use::read_later ? 2 : 3),
   ...);
#else
  (void)from;
#endif
}

template <class T, std::size_t... J>
GYRE_INLINE void tile_row(simd<T>* sums, T a, const simd<T>* b, std::index_sequence<J...>) {
  const simd<T> x = simd<T>::broadcast(a);
  ((sums[J] = fma(x, b[J], sums[J])), ...);
}

// One step of the inner dimension. Written with packs instead of loops: the sums must end up in registers at -O2 too.
template <class T, std::size_t... I, std::size_t... J>
GYRE_INLINE void tile_step(simd<T>* sums, const T* a, index a_row, const T* b, index b_panel, std::index_sequence<I...>,
                           std::index_sequence<J...> columns) {
  constexpr std::size_t vectors = tile_shape<T>::vectors, width = simd<T>::width;
  const simd<T> bs[] = {simd<T>::load(b + static_cast<index>(J / vectors) * b_panel + J % vectors * width)...};
  (tile_row(sums + I * sizeof...(J), a[static_cast<index>(I) * a_row], bs, columns), ...);
}

template <class T, std::size_t Across, std::size_t... N>
GYRE_INLINE void tile_load(simd<T>* sums, const T* c, index c_row, std::index_sequence<N...>) {
  ((sums[N] = simd<T>::load(c + static_cast<index>(N / Across) * c_row + N % Across * simd<T>::width)), ...);
}
template <class T, std::size_t Across, std::size_t... N>
GYRE_INLINE void tile_store(const simd<T>* sums, T* c, index c_row, std::index_sequence<N...>) {
  (sums[N].store(c + static_cast<index>(N / Across) * c_row + N % Across * simd<T>::width), ...);
}
template <class T, std::size_t... N>
GYRE_INLINE void tile_clear(simd<T>* sums, std::index_sequence<N...>) {
  ((sums[N] = simd<T>::zero()), ...);
}

/// One call of a tile. All strides are in elements.
template <class T>
struct tile_work {
  index depth;     // steps of the inner dimension
  const T* a;      // A's first row and step
  index a_stride;  // direct: between rows; transposed: between steps
  const T* b;      // B: the columns of a panel are adjacent,
  index b_step;    //   steps are b_step apart,
  index b_panel;   //   panels b_panel
  T* c;            // C's first element, its columns adjacent
  index c_stride;  // between rows
  bool load;       // C += instead of C =
  const T* soon;   // a tile of C that will be wanted soon, by this call or the next: brought into the cache meanwhile
  const T* ahead;  // likewise what will be wanted of B
};

/// C(i, j) += sum over k of A(i, k) B(k, j), or =, for i < H and j < P panels of tile_shape::cols. Every element is one chain of
/// multiply-adds in the order of k, begun by what C held: its bits do not depend on H, P or on how the inner dimension is cut
/// into calls.
template <class T, int H, int P, tile_source Source>
GYRE_LANEWISE void tile(const tile_work<T>& work) {
  constexpr std::size_t across = std::size_t{tile_shape<T>::vectors} * P;
  constexpr auto rows = std::make_index_sequence<std::size_t{H}>();
  constexpr auto columns = std::make_index_sequence<across>();
  constexpr auto lines = std::make_index_sequence<(tile_shape<T>::cols * sizeof(T) + cache_line - 1) / cache_line>();
  constexpr auto line = std::make_index_sequence<1>();
  constexpr auto all = std::make_index_sequence<across * H>();
  const auto [depth, a_first, a_stride, b_first, b_step, b_panel, c, c_stride, load, soon, ahead] = work;
  const index a_row = Source == tile_source::direct ? a_stride : 1, a_step = Source == tile_source::direct ? 1 : a_stride;

  simd<T> sums[across * H];
  if (load)
    tile_load<T, across>(sums, c, c_stride, all);
  else
    tile_clear(sums, all);
  const T *a = a_first, *b = b_first, *c_fetch = soon, *b_fetch = ahead;
  index k = 0;
  constexpr index steps = 2;  // of a pass: four compile longer than they gain
  for (; k + steps <= depth; k += steps) {
    if constexpr (H == tile_shape<T>::rows) {
      // Little by little: all at once they would occupy every slot for pending cache lines.
      cache_fetch<cache_use::write>(c_fetch, lines);
      c_fetch += k < steps * (H - 1) ? c_stride : 0;
      cache_fetch<cache_use::read_later>(b_fetch, line);
      b_fetch += cache_line / sizeof(T);
    } else if constexpr (H > 2) {
      // Few rows read B at the pace of the memory. (Two or one have no slots to spare.)
      const T* const far = b + 2048 / sizeof(T);
      cache_fetch<cache_use::read_soon>(far, lines);
      cache_fetch<cache_use::read_soon>(far + b_step, lines);
    }
    tile_step<T>(sums, a, a_row, b, b_panel, rows, columns);
    tile_step<T>(sums, a + a_step, a_row, b + b_step, b_panel, rows, columns);
    a += steps * a_step;
    b += steps * b_step;
  }
  for (; k < depth; ++k) {
    tile_step<T>(sums, a, a_row, b, b_panel, rows, columns);
    a += a_step;
    b += b_step;
  }
  tile_store<T, across>(sums, c, c_stride, all);
}

template <class T>
using tile_function = void (*)(const tile_work<T>&);

/// The tiles that read A's rows where they lie.
template <class T>
struct direct_tiles {
  static constexpr index low = tile_shape<T>::low_rows, full = tile_shape<T>::rows;

  /// How many panels a tile of few rows spans: it takes about 8 vectors of sums to keep the multipliers busy.
  static constexpr index wide_panels(index rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }

  /// One panel wide; rows <= low or rows == full.
  static tile_function<T> narrow(index rows) {
    return [rows]<std::size_t... H>(std::index_sequence<H...>) {
      static constexpr tile_function<T> table[] = {tile<T, static_cast<int>(H) + 1, 1, tile_source::direct>...};
      return rows == full ? tile<T, int{full}, 1, tile_source::direct> : table[rows - 1];
    }
    (std::make_index_sequence<std::size_t{low}>());
  }
  static tile_function<T> wide(index rows) {
    return rows == 1 ? tile<T, 1, 4, tile_source::direct> : rows == 2 ? tile<T, 2, 2, tile_source::direct> : narrow(rows);
  }
  /// The height of the next tile when `rows` are left: full ones first, then one or two that differ by at most one row.
  static index next(index rows) { return rows == full || rows > 2 * low ? full : rows > low ? (rows + 1) / 2 : rows; }
};

/// Calls a tile of height x width elements for the part of C that exists, rows x cols of it.
template <class T>
void tile_edge(tile_function<T> f, index height, index width, index rows, index cols, const tile_work<T>& work) {
  if (rows == height && cols == width) return f(work);
  alignas(64) T whole[std::size_t{tile_shape<T>::rows} * tile_shape<T>::cols];
  for (index i = 0; i < height; ++i)
    for (index j = 0; j < width; ++j)
      whole[i * width + j] = work.load && i < rows && j < cols ? work.c[i * work.c_stride + j] : T(0);
  tile_work<T> inner = work;
  inner.c = whole;
  inner.c_stride = width;
  inner.soon = whole;
  f(inner);
  for (index i = 0; i < rows; ++i)
    for (index j = 0; j < cols; ++j) work.c[i * work.c_stride + j] = whole[i * width + j];
}

}  // namespace detail

GYRE_END
