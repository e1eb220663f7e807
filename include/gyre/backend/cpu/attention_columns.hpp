// What a task of sequence attention works on: some columns (queries of heads),
// and a way to read keys and values.
#pragma once

#include <cmath>

#include <gyre/backend/cpu/attention_tile.hpp>

GYRE_BEGIN

namespace detail {

/// The columns of one tile: queries from row `row` on, `group` heads of each
/// from `first_head` on.
template <class T>
struct attention_columns {
  matrix_view<const T> q;
  matrix_view<T> o;
  T* lse = nullptr;  // (rows, heads), or null
  index heads = 0, width = 0;
  index row = 0, first_head = 0, group = 1, count = 0;
  index visible = 0;  // keys that the first query sees; each later query sees one more
  T scale{};

  index query_of(index column) const { return row + column / group; }
  index head_of(index column) const { return first_head + column % group; }
  const T* query(index column) const { return q[query_of(column)] + head_of(column) * width; }
  index limit(index column) const { return visible + column / group; }
  /// `x` (width) divided by the sum of its weights.
  void finish(index column, const T* x, T top, T total) const {
    const simd<T> factor = simd<T>::broadcast(T(1) / total);
    T* to = o[query_of(column)] + head_of(column) * width;
    each_vector<T>(width, [&](index c, auto lanes) GYRE_INLINE_LAMBDA { lanes.store(factor * lanes.load(x + c), to + c); });
    if (lse != nullptr) lse[query_of(column) * heads + head_of(column)] = std::log(total) + top * scale;
  }
};

/// Some keys and values of one head, in order: (keys, width) each.
template <class T>
struct key_block {
  matrix_view<const T> keys, values;
};

/// Keys and values in rows at a fixed distance.
template <class T>
struct stored_keys {
  const T *keys, *values;
  index key_stride, value_stride, width;
  key_block<T> read(index first, index count) const {
    return {{keys + first * key_stride, count, width, key_stride}, {values + first * value_stride, count, width, value_stride}};
  }
};

/// How the heads that share keys are cut into columns: `group` of them at a
/// time, `queries` positions a tile.
template <class T>
struct attention_split {
  index group, parts, queries;
  explicit attention_split(attention_shape shape) {
    const index sharing = shape.heads / shape.kv_heads;
    parts = (sharing + attention_tile<T>::columns - 1) / attention_tile<T>::columns;
    group = (sharing + parts - 1) / parts;
    queries = attention_tile<T>::columns / group;
  }
};

}  // namespace detail

GYRE_END
