// The cache of keys and values of the `cpu` backend. A lane keeps, for every executed layer, the keys of all tokens,
// (tokens, kv_heads * width), then their values.
#pragma once

#include <cstring>
#include <span>

#include <gyre/backend/cpu/attention_tile.hpp>
#include <gyre/backend/cpu/split.hpp>
#include <gyre/core/context.hpp>

GYRE_BEGIN

namespace detail {

template <class T>
void cache_append(thread_pool& pool, matrix_view<const T> k, matrix_view<const T> v, const batch_layout& layout,
                  std::span<const cache_lane<T>> lanes, index cursor) {
  const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(k.cols);
  const sequence_tiles tiles(layout, 64);
  for_rows(pool, tiles.slots(), 64 * 2 * k.cols, [&](index first, index count) {
    for (index slot = first; slot < first + count; ++slot) {
      const sequence_tiles::tile t = tiles.at(slot);
      if (t.sequence == nullptr) continue;
      const cache_lane<T>& lane = lanes[static_cast<std::size_t>(t.sequence_number)];
      T* keys = lane.base + cursor * lane.capacity + (t.sequence->past + t.first) * k.cols;
      T* values = keys + k.cols * lane.capacity;
      for (index i = 0; i < t.count; ++i) {
        const index row = t.sequence->begin + t.first + i;
        std::memcpy(keys + i * k.cols, k[row], bytes);
        std::memcpy(values + i * k.cols, v[row], bytes);
      }
    }
  });
}

/// Repeats the blocks at `cursor`, new positions only, `copies` times at the cursors stride, 2 stride, ... behind.
template <class T>
void cache_extend(thread_pool& pool, const batch_layout& layout, std::span<const cache_lane<T>> lanes,
                  std::span<const std::int32_t> copies, index cursor, std::span<const index> blocks, index stride) {
  const std::span<const sequence_span> sequences = layout.sequences();
  index cost = 0;
  for (const index width : blocks) cost += width;
  cost *= 1 + layout.rows() / (std::max)(index{1}, static_cast<index>(sequences.size()));
  for_rows(pool, static_cast<index>(sequences.size()), 4 * cost, [&](index first, index count) {
    for (index i = first; i < first + count; ++i) {
      const sequence_span& s = sequences[static_cast<std::size_t>(i)];
      const cache_lane<T>& lane = lanes[static_cast<std::size_t>(i)];
      index block = cursor;
      for (const index width : blocks) {
        const T* from = lane.base + block * lane.capacity + s.past * width;
        for (index n = 1; n <= copies[static_cast<std::size_t>(i)]; ++n)
          std::copy_n(from, s.count * width, lane.base + (block + n * stride) * lane.capacity + s.past * width);
        block += width;
      }
    }
  });
}

}  // namespace detail

GYRE_END
