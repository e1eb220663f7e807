// Sequence attention of the `cpu` backend, forward: softmax over blocks of keys with a running maximum, so that the scores of
// a sequence never exist at once (Dao et al., "FlashAttention", NeurIPS 2022; Milakov, Gimelshein 2018).
//
// One order of operations for everybody: training, prefill and decoding give a query the same bits.
#pragma once

#include <span>

#include <gyre/backend/cpu/attention_narrow.hpp>
#include <gyre/backend/cpu/attention_wide.hpp>
#include <gyre/core/context.hpp>

GYRE_BEGIN

namespace detail {

/// Below this many products of a query and a key, times the width, the calling thread does it alone.
inline constexpr index attention_inline_work = 16384;

/// Where the keys and values of a batch are: in its own rows, or, if there are lanes, in the cache.
template <class T>
struct attention_source {
  matrix_view<const T> k, v;
  std::span<const cache_lane<T>> lanes;
  index cursor = 0;
  int step = 0;

  head_keys<T> of(const sequence_tiles::tile& t, index kv_head, attention_shape shape) const {
    const index column = kv_head * shape.width, row = t.sequence->begin;
    if (lanes.empty()) return {k[row] + column, v[row] + column, k.stride, v.stride, shape.width};
    const cache_lane<T>& lane = lanes[static_cast<std::size_t>(t.sequence_number)];
    const index stride = shape.kv_heads * shape.width;
    const T* keys = lane.base + cursor * lane.capacity + column;
    return {keys, keys + stride * lane.capacity, stride, stride, shape.width, t.sequence->past, lane.steps_run, step};
  }
};

/// lse may be null.
template <class T>
void attend(thread_pool& pool, matrix_view<const T> q, const attention_source<T>& source, const batch_layout& layout,
            attention_shape shape, matrix_view<T> o, T* lse) {
  const attention_split<T> split(shape);
  const sequence_tiles tiles(layout, split.queries);
  const index sharing = shape.heads / shape.kv_heads, across = shape.kv_heads * split.parts, tasks = tiles.slots() * across;
  index work = 0;
  for (const sequence_span& s : layout.sequences())
    work += s.count * ((source.lanes.empty() ? 0 : s.past) + s.count / 2 + 1) * shape.heads * shape.width;
  scratch_pieces<T> needed;
  wide_attention<T>(shape.width, needed);
  narrow_attention<T>(shape.width, needed);
  needed.take(2 * attention_tile<T>::keys * shape.width);
  const auto one = [&](index task, int worker) {
    const sequence_tiles::tile t = tiles.at(task / across);
    if (t.sequence == nullptr) return;
    const index kv_head = task % across / split.parts, part = task % across % split.parts;
    attention_columns<T> c{q, o, lse, shape.heads, shape.width};
    c.row = t.sequence->begin + t.first;
    c.first_head = kv_head * sharing + part * split.group;
    c.group = (std::min)(split.group, sharing - part * split.group);
    if (c.group <= 0) return;
    c.count = t.count * c.group;
    c.scale = static_cast<T>(shape.scale);
    scratch_pieces<T> scratch{pool.scratch<T>(worker, needed.used)};
    wide_attention<T> wide(shape.width, scratch);
    narrow_attention<T> narrow(shape.width, scratch);
    head_keys<T> keys = source.of(t, kv_head, shape);
    keys.copies = scratch.take(2 * attention_tile<T>::keys * shape.width);
    c.visible = keys.visible_past() + t.first + 1;
    if (c.count <= narrow_attention<T>::columns)
      narrow.run(c, keys);
    else
      wide.run(c, keys);
  };
  const bool alone = work < attention_inline_work;
  pool.run(alone ? 1 : tasks, sizeof(T) * static_cast<std::size_t>(needed.used), [&](index task, int worker) {
    for (index n = alone ? 0 : task; n < (alone ? tasks : task + 1); ++n) one(n, worker);
  });
}

}  // namespace detail

GYRE_END
