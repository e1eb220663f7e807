// Tiles of sequence attention: sizes, transposed packing, and which rows of a batch belong to which tile.
//
// Attention works on columns: one column is one query of one head, and the columns of a tile read the same keys and values.
// Scores are computed transposed, (keys, columns), so that maxima, sums and exponentials go down the lanes of vectors, and so
// that the register tiles read keys and values where they lie.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include <gyre/backend/cpu/pool.hpp>
#include <gyre/backend/cpu/simd_math.hpp>
#include <gyre/backend/cpu/tile.hpp>
#include <gyre/core/layout.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

constexpr index round_up(index n, index step) { return (n + step - 1) / step * step; }

template <class T>
struct attention_tile {
  static constexpr index panel = tile_shape<T>::cols;
  static constexpr index width = simd<T>::width;
  static constexpr index rows = tile_shape<T>::rows;  // height of a register tile that reads its left factor transposed
  /// Columns at a time. A multiple of the panel, and little less than one of `rows`.
  static constexpr index columns = simd_bytes == 64 ? 96 : 48;
  /// Between rows of scores: every strip of `rows` columns can be read in whole.
  static constexpr index stride = round_up(round_up(columns, rows), width);
  /// Keys at a time, counted from the first key of the sequence. A column's result depends on this number and on nothing else
  /// that the tiles decide.
  static constexpr index keys = simd_bytes == 64 ? 128 : 96;
  static_assert(columns % panel == 0 && keys % width == 0 && keys % panel == 0);

  static constexpr index padded(index head_width) { return round_up(head_width, panel); }
};

/// Takes aligned pieces of scratch one after the other; with null, adds up what they need.
template <class T>
struct scratch_pieces {
  T* base = nullptr;
  index used = 0;
  T* take(index count) {
    T* piece = base == nullptr ? nullptr : base + used;
    used += round_up(count, static_cast<index>(cache_line / sizeof(T)));
    return piece;
  }
};

#if defined(__GNUC__)

// Of a pair of vectors `Half` rows apart: the blocks of Half lanes that stay in the upper row, and those of the lower row.
template <int Half, class T, std::size_t... I>
GYRE_INLINE void exchange(simd<T>& upper, simd<T>& lower, std::index_sequence<I...>) {
  constexpr int width = simd<T>::width;
  const auto a = upper.v, b = lower.v;
  upper.v = __builtin_shufflevector(a, b, (int{I} & Half ? int{I} - Half + width : int{I})...);
  lower.v = __builtin_shufflevector(a, b, (int{I} & Half ? int{I} + width : int{I} + Half)...);
}
template <int Half, class T, std::size_t... Pair>
GYRE_INLINE void exchange_rows(simd<T>* v, std::index_sequence<Pair...>) {
  constexpr std::size_t half = Half;
  ((exchange<Half>(v[Pair / half * 2 * half + Pair % half], v[Pair / half * 2 * half + Pair % half + half],
                   std::make_index_sequence<std::size_t{simd<T>::width}>())),
   ...);
  if constexpr (Half > 1) exchange_rows<Half / 2>(v, std::index_sequence<Pair...>());
}
/// The square matrix of `width` vectors, transposed.
template <class T>
GYRE_INLINE void transpose(simd<T>* v) {
  exchange_rows<simd<T>::width / 2>(v, std::make_index_sequence<std::size_t{simd<T>::width / 2}>());
}

#else

template <class T>
void transpose(simd<T>* v) {
  for (int i = 0; i < simd<T>::width; ++i)
    for (int j = 0; j < i; ++j) std::swap(v[i].v[j], v[j].v[i]);
}

#endif

template <class T, class Lanes, std::size_t... I>
GYRE_INLINE void pack_square(const T* const* rows, index at, Lanes lanes, T* to, std::index_sequence<I...>) {
  simd<T> v[] = {lanes.load(rows[I] + at)...};
  transpose(v);
  const index count = (std::min)(lanes.count, index{simd<T>::width});
  if (count == simd<T>::width) {
    ((v[I].store(to + static_cast<index>(I) * tile_shape<T>::cols)), ...);
  } else {
    for (index i = 0; i < count; ++i) v[i].store(to + i * tile_shape<T>::cols);
  }
}

/// Vectors row(0), ..., row(count - 1) of `depth` scalars as the columns of panels (depth, panel); columns up to the next panel
/// are 0.
template <class T, class Row>
void pack_columns(T* to, index count, index depth, Row row) {
  constexpr index width = simd<T>::width, panel = tile_shape<T>::cols;
  constexpr auto lanes = std::make_index_sequence<std::size_t{width}>();
  for (index x = 0; x < round_up(count, panel); x += width) {
    T* const first = to + x / panel * panel * depth + x % panel;
    if (x >= count) {
      for (index k = 0; k < depth; ++k) simd<T>::zero().store(first + k * panel);
      continue;
    }
    const T* rows[simd<T>::width];
    for (index i = 0; i < width; ++i) rows[i] = row((std::min)(x + i, count - 1));
    index k = 0;
    for (; k + width <= depth; k += width) pack_square(rows, k, whole_vector<T>{}, first + k * panel, lanes);
    if (k < depth) pack_square(rows, k, first_lanes<T>{depth - k}, first + k * panel, lanes);
    if (x + width > count)
      for (k = 0; k < depth; ++k) {
        T* missing = first + k * panel;
        for (index i = count - x; i < width; ++i) missing[i] = T(0);
      }
  }
}

/// Cuts the sequences of a batch into tiles of at most `size` positions. Tiles have slots, some of which are empty: a slot's
/// sequence is found by bisection, without a list.
class sequence_tiles {
 public:
  sequence_tiles(const batch_layout& layout, index size) : sequences_(layout.sequences()), size_(size), rows_(layout.rows()) {}

  struct tile {
    const sequence_span* sequence = nullptr;  // null: the slot is empty
    index sequence_number = 0;
    index number = 0;            // of the tile in its sequence
    index first = 0, count = 0;  // positions in the sequence's rows
  };
  index slots() const { return static_cast<index>(sequences_.size()) + rows_ / size_; }
  tile at(index slot) const {
    index low = 0, high = static_cast<index>(sequences_.size());  // the last sequence whose slots begin at or before
    while (high - low > 1) {
      const index middle = low + (high - low) / 2;
      if (first_slot(middle) <= slot)
        low = middle;
      else
        high = middle;
    }
    const sequence_span& s = sequences_[static_cast<std::size_t>(low)];
    const index number = slot - first_slot(low), first = number * size_;
    if (first >= s.count) return {};
    return {&s, low, number, first, (std::min)(size_, s.count - first)};
  }
  /// The largest number of tiles of one sequence.
  index longest() const {
    index most = 0;
    for (const sequence_span& s : sequences_) most = (std::max)(most, (s.count + size_ - 1) / size_);
    return most;
  }

 private:
  // A sequence of n rows takes at most n / size + 1 slots, rounded down: those of different sequences never meet.
  index first_slot(index number) const { return number + sequences_[static_cast<std::size_t>(number)].begin / size_; }

  std::span<const sequence_span> sequences_;
  index size_, rows_;
};

}  // namespace detail

GYRE_END
