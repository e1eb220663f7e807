// The cache of keys and values of the `cuda` backend. A lane keeps, for every executed layer, the keys of all tokens,
// (tokens, kv_heads * width), then their values.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <gyre/backend/cuda/kernels/cache.cuh>
#include <gyre/core/context.hpp>

GYRE_BEGIN

namespace detail {

template <class Backend>
struct cuda_cache {
  template <class T>
  void cache_append(matrix_view<const T> k, matrix_view<const T> v, const batch_layout& layout,
                    std::span<const cache_lane<T>> lanes, index cursor) {
    appends_.clear();
    const index most = (std::max)(index{1}, cache_block / (std::max)(index{1}, k.cols));
    std::size_t number = 0;
    for (const sequence_span& s : layout.sequences()) {
      const cache_lane<T>& lane = lanes[number++];
      T* const keys = lane.base + cursor * lane.capacity + s.past * k.cols;
      T* const values = keys + lane.capacity * k.cols;
      for (index first = 0; first < s.count; first += most)
        appends_.push_back(
            {s.begin + first, (std::min)(most, s.count - first), keys + first * k.cols, values + first * k.cols});
    }
    const append_task* const tasks = device().stage(std::span<const append_task>(appends_));
    simt::launch(append_to_cache<T>, dim3(static_cast<unsigned>(appends_.size()), 2), cache_threads, 0, device().stream(), k, v,
                 tasks);
  }

  template <class T>
  void cache_extend(const batch_layout& layout, std::span<const cache_lane<T>> lanes, std::span<const std::int32_t> copies,
                    index cursor, std::span<const index> blocks, index stride) {
    extends_.clear();
    std::size_t number = 0;
    for (const sequence_span& s : layout.sequences()) {
      const cache_lane<T>& lane = lanes[number];
      const std::int32_t repeated = copies[number++];
      index block = cursor;
      for (const index width : blocks) {
        T* const from = lane.base + block * lane.capacity + s.past * width;
        for (index first = 0; first < s.count * width && repeated > 0; first += cache_block)
          extends_.push_back(
              {from + first, (std::min)(cache_block, s.count * width - first), stride * lane.capacity, repeated});
        block += width;
      }
    }
    const extend_task* const tasks = device().stage(std::span<const extend_task>(extends_));
    simt::launch(extend_cache<T>, dim3(static_cast<unsigned>(extends_.size())), cache_threads, 0, device().stream(), tasks);
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }

  std::vector<append_task> appends_;  // of the last call: kept for their memory
  std::vector<extend_task> extends_;
};

}  // namespace detail

GYRE_END
