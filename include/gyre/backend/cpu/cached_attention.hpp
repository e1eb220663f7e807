// Attention over cached keys and values of the `cpu` backend. A lane keeps, for every executed layer, the keys of all tokens,
// (tokens, kv_heads * width), then their values.
#pragma once

#include <cstring>
#include <span>

#include <gyre/backend/cpu/attention.hpp>
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

/// Cached keys and values of one head, without those of past tokens that ran no more than `step` steps. Such tokens may have
/// left the memory unwritten, so it must not even be multiplied by 0: the others are copied together.
template <class T>
class lane_keys {
 public:
  lane_keys(const stored_keys<T>& stored, const std::int32_t* steps_run, index past, int step, scratch_pieces<T>& scratch)
      : stored_(stored), steps_run_(steps_run), past_(past), step_(step) {
    if (steps_run == nullptr) return;
    keys_ = scratch.take(attention_tile<T>::keys * stored.width);
    values_ = scratch.take(attention_tile<T>::keys * stored.width);
  }
  /// Of the past tokens.
  index visible() const {
    if (steps_run_ == nullptr) return past_;
    index count = 0;
    for (index j = 0; j < past_; ++j) count += steps_run_[j] > step_ ? 1 : 0;
    return count;
  }
  key_block<T> read(index first, index count) {
    if (steps_run_ == nullptr) return stored_.read(first, count);
    const index width = stored_.width;
    for (index j = 0; j < count; ++j, ++next_) {
      while (next_ < past_ && steps_run_[next_] <= step_) ++next_;
      std::copy_n(stored_.keys + next_ * stored_.key_stride, width, keys_ + j * width);
      std::copy_n(stored_.values + next_ * stored_.value_stride, width, values_ + j * width);
    }
    return {{keys_, count, width}, {values_, count, width}};
  }

 private:
  stored_keys<T> stored_;
  const std::int32_t* steps_run_;
  index past_;
  int step_;
  index next_ = 0;  // position to be read
  T *keys_ = nullptr, *values_ = nullptr;
};

template <class T>
void cached_attention(thread_pool& pool, matrix_view<const T> q, const batch_layout& layout,
                      std::span<const cache_lane<T>> lanes, index cursor, attention_shape shape, int step, matrix_view<T> o) {
  const index stride = shape.kv_heads * shape.width;
  index pairs = 0;
  for (const sequence_span& s : layout.sequences()) pairs += s.count * (s.past + s.count / 2);
  attend<T>(pool, q, layout, shape, o, nullptr, pairs * shape.heads * shape.width,
            [&](const sequence_tiles::tile& t, index kv_head, scratch_pieces<T>& scratch, index& visible) {
              const cache_lane<T>& lane = lanes[static_cast<std::size_t>(t.sequence_number)];
              const T* keys = lane.base + cursor * lane.capacity + kv_head * shape.width;
              lane_keys<T> read({keys, keys + stride * lane.capacity, stride, stride, shape.width}, lane.steps_run,
                                t.sequence->past, step, scratch);
              visible = read.visible() + t.first + 1;
              return read;
            });
}

}  // namespace detail

GYRE_END
