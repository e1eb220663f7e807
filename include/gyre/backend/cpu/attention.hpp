// Sequence attention of the `cpu` backend, forward: softmax over blocks of keys
// with a running maximum, so that the scores of a sequence never exist at once
// (Dao et al., "FlashAttention", NeurIPS 2022; Milakov, Gimelshein 2018).
//
// One order of operations for everybody: training, prefill and decoding give a
// query the same bits.
#pragma once

#include <gyre/backend/cpu/attention_narrow.hpp>
#include <gyre/backend/cpu/attention_wide.hpp>

GYRE_BEGIN

namespace detail {

/// Below this many products of a query and a key, times the width, the calling
/// thread does it alone.
inline constexpr index attention_inline_work = 16384;

/// Runs every tile of a batch. `open(tile, kv_head, scratch, visible)` gives
/// the keys and, by reference, how many the tile's first query sees.
template <class T, class Open>
void attend(thread_pool& pool, matrix_view<const T> q, const batch_layout& layout, attention_shape shape, matrix_view<T> o,
            T* lse, index work, Open open) {
  const attention_split<T> split(shape);
  const sequence_tiles tiles(layout, split.queries);
  const index sharing = shape.heads / shape.kv_heads, across = shape.kv_heads * split.parts, tasks = tiles.slots() * across;
  scratch_pieces<T> needed;
  wide_attention<T>(shape.width, needed);
  narrow_attention<T>(shape.width, needed);
  needed.take(2 * attention_tile<T>::keys * shape.width);  // copies by `open`
  const auto one = [&](index task, int worker) {
    const sequence_tiles::tile t = tiles.at(task / across);
    if (t.sequence == nullptr) return;
    const index kv_head = task % across / split.parts, part = task % across % split.parts;
    scratch_pieces<T> scratch{pool.scratch<T>(worker, needed.used)};
    wide_attention<T> wide(shape.width, scratch);
    narrow_attention<T> narrow(shape.width, scratch);
    attention_columns<T> c{q, o, lse, shape.heads, shape.width};
    c.row = t.sequence->begin + t.first;
    c.first_head = kv_head * sharing + part * split.group;
    c.group = (std::min)(split.group, sharing - part * split.group);
    c.count = t.count * c.group;
    c.scale = static_cast<T>(shape.scale);
    if (c.group <= 0) return;
    auto keys = open(t, kv_head, scratch, c.visible);
    if (c.count <= narrow_attention<T>::columns)
      narrow.run(c, keys);
    else
      wide.run(c, keys);
  };
  const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(needed.used);
  if (work < attention_inline_work) {
    pool.run(1, bytes, [&](index, int worker) {
      for (index task = 0; task < tasks; ++task) one(task, worker);
    });
  } else {
    pool.run(tasks, bytes, one);
  }
}

template <class T>
void attention(thread_pool& pool, matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v,
               const batch_layout& layout, attention_shape shape, matrix_view<T> o, T* lse) {
  index pairs = 0;
  for (const sequence_span& s : layout.sequences()) pairs += s.count * s.count / 2;
  attend<T>(pool, q, layout, shape, o, lse, pairs * shape.heads * shape.width,
            [&](const sequence_tiles::tile& t, index kv_head, scratch_pieces<T>&, index& visible) {
              visible = t.first + 1;
              const index column = kv_head * shape.width, row = t.sequence->begin;
              return stored_keys<T>{k[row] + column, v[row] + column, k.stride, v.stride, shape.width};
            });
}

}  // namespace detail

GYRE_END
