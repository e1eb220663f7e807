// What a task of sequence attention works on: some columns (queries of heads), and a way to read keys and values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <gyre/backend/cpu/attention_tile.hpp>

GYRE_BEGIN

namespace detail {

/// The columns of one tile: queries from row `row` on, `group` heads of each from `first_head` on.
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

/// Keys and values of one head, position after position, at a fixed distance. In a cache, `past` of them are of past tokens,
/// and where `steps_run` says how many steps each of those ran, the ones that ran no more than `step` are left out. They may
/// have left the memory unwritten, so it must not even be multiplied by 0: the others are copied together.
template <class T>
struct head_keys {
  const T *keys, *values;
  index key_stride, value_stride, width;
  index past = 0;
  const std::int32_t* steps_run = nullptr;
  int step = 0;
  T* copies = nullptr;  // with steps_run: 2 * attention_tile::keys * width
  index next = 0;       // with steps_run: the position to be read next

  /// How many past tokens are not left out.
  index visible_past() const {
    if (steps_run == nullptr) return past;
    index count = 0;
    for (index j = 0; j < past; ++j) count += steps_run[j] > step ? 1 : 0;
    return count;
  }
  /// The next `count` that are not left out, `first` having been read before.
  key_block<T> read(index first, index count) {
    if (steps_run == nullptr)
      return {{keys + first * key_stride, count, width, key_stride},
              {values + first * value_stride, count, width, value_stride}};
    T* const value_copies = copies + attention_tile<T>::keys * width;
    for (index j = 0; j < count; ++j, ++next) {
      while (next < past && steps_run[next] <= step) ++next;
      std::copy_n(keys + next * key_stride, width, copies + j * width);
      std::copy_n(values + next * value_stride, width, value_copies + j * width);
    }
    return {{copies, count, width}, {value_copies, count, width}};
  }
};

/// How the heads that share keys are cut into columns: `group` of them at a time, `queries` positions a tile.
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
