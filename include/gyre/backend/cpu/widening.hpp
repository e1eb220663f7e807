// Float copies of bf16 operands, in scratch of the pool.
#pragma once

#include <algorithm>

#include <gyre/backend/cpu/elementwise.hpp>
#include <gyre/backend/cpu/packed.hpp>
#include <gyre/backend/cpu/pool.hpp>
#include <gyre/backend/cpu/split.hpp>
#include <gyre/core/bfloat16.hpp>

GYRE_BEGIN

namespace detail {

inline void copy(thread_pool& pool, matrix_view<const bfloat16> x, matrix_view<float> y) {
  for_spans(pool, y.rows, y.cols, x.contiguous() && y.contiguous(), [&](index i, index first, index count) {
    const bfloat16* const from = x[i] + first;
    float* const to = y[i] + first;
    for (index j = 0; j < count; ++j) to[j] = from[j];
  });
}
inline void copy(thread_pool& pool, matrix_view<const float> x, matrix_view<bfloat16> y) {
  for_spans(pool, y.rows, y.cols, x.contiguous() && y.contiguous(), [&](index i, index first, index count) {
    const float* const from = x[i] + first;
    bfloat16* const to = y[i] + first;
    for (index j = 0; j < count; ++j) to[j] = bfloat16(from[j]);
  });
}

/// Float copies of operands, until the object ends. Keeps the pool for the calling thread.
class float_copies {
 public:
  /// Room for `scalars` in at most eight pieces.
  float_copies(thread_pool& pool, index scalars)
      : pool_(pool), turn_(pool), next_(turn_.scratch<float>(scalars + most_pieces * line)) {}

  matrix_view<float> room(index rows, index cols) {
    const matrix_view<float> piece(next_, rows, cols);
    next_ += divide_up(rows * cols, line) * line;
    return piece;
  }
  matrix_view<float> of(matrix_view<const bfloat16> x) {
    const matrix_view<float> piece = room(x.rows, x.cols);
    copy(pool_, x, piece);
    return piece;
  }
  /// Null stays null.
  const float* of(const bfloat16* x, index count) {
    return x == nullptr ? nullptr : of(matrix_view<const bfloat16>(x, 1, count)).data;
  }

 private:
  static constexpr index most_pieces = 8, line = static_cast<index>(cache_line / sizeof(float));
  thread_pool& pool_;
  thread_pool::exclusive turn_;
  float* next_;
};

/// f(first, count) for blocks of rows, one after the other: few enough to stay in the caches, and as many as sums of rows are cut
/// into. `scalars`: floats a row.
template <class F>
void for_row_blocks(index rows, index scalars, F f) {
  const index step = (std::max)(index{1}, index{131072} / (std::max)(scalars, index{1}) / rows_per_sum) * rows_per_sum;
  for (index first = 0; first < rows; first += step) f(first, (std::min)(step, rows - first));
}
inline void store_rounded(thread_pool& pool, matrix_view<float> x, matrix_view<bfloat16> y) {
  copy(pool, matrix_view<const float>(x), y);
}

}  // namespace detail

GYRE_END
