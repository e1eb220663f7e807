// Matrices rearranged for the product kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <gyre/backend/cpu/aligned.hpp>
#include <gyre/backend/cpu/pool.hpp>
#include <gyre/backend/cpu/tile.hpp>
#include <gyre/backend/cpu/transpose.hpp>
#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

namespace detail {

constexpr index divide_up(index a, index b) { return (a + b - 1) / b; }

/// Panel [k][Width] of columns [first, first + Width) of w(depth, cols); columns that do not exist are 0.
template <int Width, class T, class W>
void pack_panel(T* to, matrix_view<const W> w, index first) {
  const index here = (std::min)(index{Width}, w.cols - first);
  const W* from = w.data + first;
  if (here == Width) {
    for (index k = 0; k < w.rows; ++k, to += Width, from += w.stride) {
      if constexpr (std::is_same_v<T, W>)
        std::memcpy(to, from, Width * sizeof(T));
      else
        for (index j = 0; j < Width; ++j) to[j] = from[j];
    }
    return;
  }
  for (index k = 0; k < w.rows; ++k, to += Width, from += w.stride)
    for (index j = 0; j < Width; ++j) to[j] = j < here ? from[j] : T(0);
}

/// Panels of a few columns side by side, each [k][Width], from rows [begin, end) of w(depth, cols); columns that do not exist
/// are 0. Row by row, so that memory is read front to back.
template <int Width, class T>
void pack_rows(T* to, index depth, matrix_view<const T> w, index begin, index end) {
  const index whole = w.cols / Width, rest = w.cols - whole * Width;
  for (index k = begin; k < end; ++k) {
    const T* from = w[k];
    T* at = to + k * Width;
    for (index p = 0; p < whole; ++p, from += Width, at += Width * depth) std::memcpy(at, from, Width * sizeof(T));
    if (rest > 0)
      for (index j = 0; j < Width; ++j) at[j] = j < rest ? from[j] : T(0);
  }
}

/// Panel [k][tile_shape::cols] of w^T, for rows [first, ...) of w(cols, depth); rows that do not exist are 0.
template <class T, class W>
void pack_panel_transposed(T* to, matrix_view<const W> w, index first) {
  using block = turned_block<T>;
  constexpr index width = tile_shape<T>::cols;
  static_assert(width % block::rows == 0);
  const index here = (std::min)(width, w.rows - first);
  for (index j = 0; j < width; j += block::rows, to += block::rows) {
    index k = 0;
    if constexpr (std::is_same_v<T, W>) {
      if (j + block::rows <= here) {
        const T* rows[block::rows];
        for (index i = 0; i < block::rows; ++i) rows[i] = w[first + j + i];
        for (; k + block::per_lane <= w.cols; k += block::per_lane) block::run(rows, k, to + k * width, width);
      }
    }
    for (; k < w.cols; ++k)
      for (index i = 0; i < block::rows; ++i) to[k * width + i] = j + i < here ? w[first + j + i][k] : T(0);
  }
}

}  // namespace detail

/// The right factor B(depth, cols) of a product, rearranged once so that each product reads it front to back: panels of a few
/// columns, padded with zeros, each panel its rows one after the other. Holds one copy; it does not refer to the original.
///
/// The original may be of another type that becomes T exactly: bf16 for float.
///
/// The memory is the caller's, `size(depth, cols)` scalars aligned to 64 bytes, or, if none is given, the object's own.
template <class T>
class packed_matrix {
 public:
  using scalar = T;
  static constexpr index panel = detail::tile_shape<T>::cols;

  /// Scalars that a packed B(depth, cols) takes.
  static constexpr index size(index depth, index cols) { return detail::divide_up(cols, panel) * panel * depth; }

  packed_matrix() = default;
  packed_matrix(index depth, index cols) : depth_(depth), cols_(cols) {
    check();
    own_ = detail::allocate_aligned(sizeof(T) * static_cast<std::size_t>(size(depth, cols)));
    data_ = reinterpret_cast<T*>(own_.get());
  }
  packed_matrix(T* memory, index depth, index cols) : data_(memory), depth_(depth), cols_(cols) { check(); }

  index depth() const { return depth_; }
  index cols() const { return cols_; }
  index panels() const { return detail::divide_up(cols_, panel); }
  const T* data() const { return data_; }
  /// Panel p: (depth, panel), contiguous.
  T* operator[](index p) { return data_ + p * panel * depth_; }
  const T* operator[](index p) const { return data_ + p * panel * depth_; }

  /// B = b, b(depth, cols) anywhere in memory.
  template <class W>
  void pack(matrix_view<const W> b) {
    pack_panels(b, 0, panels());
  }
  /// B = w^T, w(cols, depth): for y = x w^T with weights stored (out, in).
  template <class W>
  void pack_transposed(matrix_view<const W> w) {
    pack_panels_transposed(w, 0, panels());
  }

  template <class W>
  void pack(thread_pool& pool, matrix_view<const W> b) {
    pool.run(pack_tasks(), [&](index task, int) { pack(b, task); });
  }
  template <class W>
  void pack_transposed(thread_pool& pool, matrix_view<const W> w) {
    pool.run(pack_tasks(), [&](index task, int) { pack_transposed(w, task); });
  }

  /// Packing cut into tasks, of a few panels each, that may run at the same time; pack is all of them.
  index pack_tasks() const { return detail::divide_up(panels(), panels_per_task()); }
  template <class W>
  void pack(matrix_view<const W> b, index task) {
    pack_panels(b, task * panels_per_task(), (std::min)(panels(), (task + 1) * panels_per_task()));
  }
  template <class W>
  void pack_transposed(matrix_view<const W> w, index task) {
    pack_panels_transposed(w, task * panels_per_task(), (std::min)(panels(), (task + 1) * panels_per_task()));
  }

 private:
  void check() const {
    if (depth_ < 0 || cols_ < 0) fail("packed_matrix: negative size ", depth_, " x ", cols_);
  }
  void match(index depth, index cols) const {
    if (depth != depth_ || cols != cols_)
      fail("packed_matrix::pack: a matrix of ", depth, " x ", cols, " given to a packed matrix of ", depth_, " x ", cols_);
  }
  // About 64 KiB of work.
  index panels_per_task() const { return (std::max)(index{1}, index{16384} / (std::max)(index{1}, panel * depth_)); }

  template <class W>
  void pack_panels(matrix_view<const W> b, index from, index to) {
    match(b.rows, b.cols);
    for (index p = from; p < to; ++p) detail::pack_panel<panel>((*this)[p], b, p * panel);
  }
  template <class W>
  void pack_panels_transposed(matrix_view<const W> w, index from, index to) {
    match(w.cols, w.rows);
    for (index p = from; p < to; ++p) detail::pack_panel_transposed((*this)[p], w, p * panel);
  }

  T* data_ = nullptr;
  index depth_ = 0, cols_ = 0;
  detail::aligned_memory own_;
};

GYRE_END
