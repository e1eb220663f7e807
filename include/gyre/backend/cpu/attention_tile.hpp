// Tiles of sequence attention: sizes, transposed packing, and which rows of a batch belong to which tile.
//
// Attention works on columns: one column is one query of one head, and the columns of a tile read the same keys and values.
// Scores are computed transposed, (keys, columns), so that maxima, sums and exponentials go down the lanes of vectors, and so
// that the register tiles read keys and values where they lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include <gyre/backend/cpu/pool.hpp>
#include <gyre/backend/cpu/simd_math.hpp>
#include <gyre/backend/cpu/tile.hpp>
#include <gyre/backend/cpu/transpose.hpp>
#include <gyre/core/layout.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

constexpr index round_up(index n, index step) { return (n + step - 1) / step * step; }

template <class T>
struct attention_tile {
  static constexpr index panel = tile_shape<T>::cols;
  static constexpr index width = simd<T>::width;
  static constexpr index rows = tile_shape<T>::rows;  // of a register tile that reads its left factor transposed
  /// Columns at a time. A multiple of the panel, and little less than one of `rows`.
  static constexpr index columns = 96;
  /// Between rows of scores: every strip of `rows` columns can be read in whole.
  static constexpr index stride = round_up(round_up(columns, rows), width);
  /// Keys at a time, counted from the first key of the sequence. A column's result depends on this number and on nothing else
  /// that the tiles decide.
  static constexpr index keys = simd_bytes == 64 ? 128 : 96;
  /// Of the backward pass: positions in a tile of queries and in one of keys.
  static constexpr index gradient_rows = 128;
  static constexpr index gradient_stride = round_up(round_up(gradient_rows, rows), width);
  static_assert(gradient_rows % panel == 0);
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

/// The rows of x(count, depth) as the columns of panels (depth, panel); columns up to the next panel are 0. With `group` > 1 each
/// of x's rows holds that many of them, depth apart.
template <class T>
void pack_columns(T* to, index count, index depth, const T* x, index stride, index group = 1) {
  using block = turned_block<T>;
  constexpr index panel = tile_shape<T>::cols, width = block::rows;
  static_assert(panel % width == 0);
  for (index i = 0; i < round_up(count, panel); i += width) {
    T* const first = to + i / panel * panel * depth + i % panel;
    const index here = (std::min)(width, count - i);
    if (here < width)
      for (index k = 0; k < depth; ++k) std::fill_n(first + k * panel, width, T(0));
    if (here <= 0) continue;
    const T* rows[block::rows];
    for (index j = 0; j < width; ++j) {
      const index row = (std::min)(i + j, count - 1);
      rows[j] = group == 1 ? x + row * stride : x + row / group * stride + row % group * depth;
    }
    index k = 0;
    if (here == width)
      for (; k + block::per_lane <= depth; k += block::per_lane) block::run(rows, k, first + k * panel, panel);
    for (; k < depth; ++k)
      for (index j = 0; j < here; ++j) first[k * panel + j] = rows[j][k];
  }
}

/// What a tile of A, B and C needs to know, where nothing has to be fetched beforehand.
template <class T>
tile_work<T> tile_of(index depth, const T* a, index a_stride, const T* b, index b_step, index b_panel, T* c, index c_stride,
                     bool load) {
  tile_work<T> work{};
  work.depth = depth;
  work.a = a, work.a_stride = a_stride;
  work.b = b, work.b_step = b_step, work.b_panel = b_panel;
  work.c = c, work.c_stride = c_stride, work.load = load;
  work.soon = c, work.ahead = b;
  return work;
}

/// C(rows, cols) (+)= A^T B for at most attention_tile::rows rows. A(depth, rows): readable for whole strips of rows. B:
/// packed panels (depth, panel), `b_panel` apart.
template <class T>
void multiply_turned(matrix_view<T> c, const T* a, index a_stride, index depth, const T* b, index b_panel, bool load) {
  constexpr index rows = attention_tile<T>::rows, panel = attention_tile<T>::panel;
  for (index k = 0; k < c.cols; k += panel, b += b_panel)
    tile_edge<T>(tile<T, int{rows}, 1, tile_source::transposed>, rows, panel, c.rows, (std::min)(panel, c.cols - k),
                 tile_of(depth, a, a_stride, b, panel, index{0}, c.data + k, c.stride, load));
}

template <class T, std::size_t... N>
GYRE_INLINE void multiply_vectors(T* c, index depth, const T* a, index a_step, const T* b, index b_step, index b_panel,
                                  bool load, std::index_sequence<N...>) {
  constexpr index width = simd<T>::width, vectors = tile_shape<T>::vectors;
  simd<T> sums[] = {(load ? simd<T>::load(c + static_cast<index>(N) * width) : simd<T>::zero())...};
  for (index k = 0; k < depth; ++k, a += a_step, b += b_step) {
    const simd<T> x = simd<T>::broadcast(*a);
    ((sums[N] = fma(x, simd<T>::load(b + static_cast<index>(N) / vectors * b_panel + static_cast<index>(N) % vectors * width),
                    sums[N])),
     ...);
  }
  (sums[N].store(c + static_cast<index>(N) * width), ...);
}

/// One row of a product, c(cols) (+)= a B, with the chain of multiply-adds that a tile would have. Operands as in tile_work.
///
/// A tile multiplies all of its columns with all of its keys. Where some of the columns must not see some of the keys, a weight
/// of 0 would not do: a value that is not finite would spoil the sum all the same. So the tile takes the keys that all columns
/// see, and this, for each column, the few others.
template <class T>
void multiply_row(T* c, index cols, index depth, const T* a, index a_step, const T* b, index b_step, index b_panel, bool load) {
  constexpr index panel = attention_tile<T>::panel;
  static_assert(tile_shape<T>::vectors == 2);
  index j = 0;
  for (; j + 2 * panel <= cols; j += 2 * panel, b += 2 * b_panel)
    multiply_vectors(c + j, depth, a, a_step, b, b_step, b_panel, load, std::make_index_sequence<4>());
  for (; j < cols; j += panel, b += b_panel) {
    if (cols - j >= panel) {
      multiply_vectors(c + j, depth, a, a_step, b, b_step, b_panel, load, std::make_index_sequence<2>());
      continue;
    }
    T whole[std::size_t{panel}] = {};
    if (load) std::copy_n(c + j, cols - j, whole);
    multiply_vectors(whole, depth, a, a_step, b, b_step, b_panel, load, std::make_index_sequence<2>());
    std::copy_n(whole, cols - j, c + j);
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
    index low = 0,
          high = static_cast<index>(sequences_.size());  // the last sequence whose slots begin at or before
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
