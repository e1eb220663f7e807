// Sequence attention of the `cuda` backend, forward and over a cache.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include <gyre/backend/cuda/kernels/attention.cuh>
#include <gyre/backend/cuda/kernels/attention_bf16.cuh>
#include <gyre/core/context.hpp>

GYRE_BEGIN

namespace detail {

/// Calls f.operator()<Width>() with the width of the narrowest kernels that hold heads of `width` features.
template <class F>
void with_head_width(const char* call, index width, F f) {
  if (width <= 64)
    f.template operator()<64>();
  else if (width <= 128)
    f.template operator()<128>();
  else if (width <= static_cast<index>(attention_most_width))
    f.template operator()<attention_most_width>();
  else
    fail(call, ": heads of ", width, " features; the cuda backend has kernels for up to ", attention_most_width);
}

/// Whether every row begins at a multiple of `bytes`.
template <class T>
bool rows_aligned(const T* data, index stride, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0 && static_cast<std::size_t>(stride) * sizeof(T) % bytes == 0;
}

/// The work of one call, block by block. Kept between calls for its memory.
struct attention_plan {
  std::vector<attention_task> wide, narrow;
  std::vector<attention_join> joins;
  index parts = 0;

  void clear() { wide.clear(), narrow.clear(), joins.clear(), parts = 0; }
  /// Adds a sequence; `t` has its keys, values, row, past and steps.
  void add(const sequence_span& s, index group, attention_task t, index wide_rows, index narrow_rows, bool divides) {
    const index all = s.count * group, rows = all <= wide_rows ? narrow_rows : wide_rows;
    t.row = s.begin;
    for (index first = 0; first < all; first += rows) {
      t.first = first, t.count = (std::min)(rows, all - first), t.part = -1;
      const index last = t.past + (first + t.count - 1) / group + 1, pieces = (last - 1) / attention_part + 1;
      t.first_key = 0, t.last_key = last;
      if (rows == wide_rows && rows != narrow_rows) {
        wide.push_back(t);
      } else if (!divides || pieces == 1) {
        narrow.push_back(t);
      } else {
        joins.push_back({t.row, t.first, t.count, parts, pieces});
        for (index n = 0; n < pieces; ++n) {
          t.part = parts++;
          t.first_key = n * attention_part, t.last_key = (std::min)(last, t.first_key + attention_part);
          narrow.push_back(t);
        }
      }
    }
  }
};

template <class Backend>
struct cuda_attention {
  template <class T, class S>
  void attention(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, const batch_layout& layout,
                 attention_shape shape, matrix_view<T> o, S* lse) {
    const auto source = [&](std::size_t, const sequence_span& s) {
      return attention_task{k[s.begin], v[s.begin], nullptr, 0, 0, 0, 0, 0, 0, 0};
    };
    attend_all<T, S>("attention", layout, shape, source, attention_operands<T, S>{q, o, lse, k.stride, v.stride}, false);
  }
  template <class T>
  void cached_attention(matrix_view<const T> q, const batch_layout& layout, std::span<const cache_lane<T>> lanes, index cursor,
                        attention_shape shape, int step, matrix_view<T> o) {
    steps_.clear(), steps_begin_.clear();
    std::size_t number = 0;
    for (const sequence_span& s : layout.sequences()) {
      const std::int32_t* const run = lanes[number++].steps_run;
      steps_begin_.push_back(steps_.size());
      if (run != nullptr) steps_.insert(steps_.end(), run, run + s.past);
    }
    const std::int32_t* const steps = device().stage(std::span<const std::int32_t>(steps_));
    const index width = shape.kv_heads * shape.width;
    const auto source = [&](std::size_t n, const sequence_span& s) {
      const cache_lane<T>& lane = lanes[n];
      const T* const keys = lane.base + cursor * lane.capacity;
      const bool skips = lane.steps_run != nullptr && s.past > 0;
      return attention_task{
          keys, keys + width * lane.capacity, skips ? steps + steps_begin_[n] : nullptr, 0, s.past, 0, 0, 0, 0, 0};
    };
    attention_operands<T, compute_t<T>> x{q, o, nullptr, width, width};
    x.step = step;
    attend_all<T, compute_t<T>>("cached_attention", layout, shape, source, x, true);
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }

  /// source(n, sequence) says, each time it is asked, where the keys and values of sequence n are; x has q, o, lse, the strides and
  /// the step. `divides`: the keys of few queries go to several blocks.
  template <class T, class S, class Source>
  void attend_all(const char* call, const batch_layout& layout, attention_shape shape, Source source,
                  attention_operands<T, S> x, bool divides) {
    using C = compute_t<T>;
    x.heads = shape.heads, x.kv_heads = shape.kv_heads, x.width = shape.width;
    x.scale = static_cast<C>(shape.scale);
    with_head_width(call, shape.width, [&]<unsigned Width>() {
      using shapes = attention_shapes<T, Width>;
      using wide = typename shapes::wide;
      using narrow = typename shapes::narrow;
      const index group = shape.heads / shape.kv_heads;
      const auto plan = [&](index wide_rows, index narrow_rows) {
        plan_.clear();
        std::size_t number = 0;
        for (const sequence_span& s : layout.sequences())
          plan_.add(s, group, source(number++, s), wide_rows, narrow_rows, divides);
        if (plan_.parts > 0)
          x.parts = device().template workspace<C>(plan_.parts * shape.kv_heads * narrow_rows * (shape.width + 2));
      };
      const auto run = [&](auto kernel, std::vector<attention_task>& tasks, unsigned threads, std::size_t shared_bytes) {
        std::reverse(tasks.begin(), tasks.end());  // those with the most keys first
        x.tasks = device().stage(std::span<const attention_task>(tasks));
        simt::launch(kernel, blocks(tasks.size(), shape), threads, shared_bytes, device().stream(), x);
      };
      static_assert(narrow::left == 16);
      bool done = false;
      if constexpr (std::is_same_v<T, bfloat16> && Width <= 128) {
        using few = attend_bf16_tile<Width, 1>;
        using many = attend_bf16_tile<Width, 4>;
        plan(many::left, few::left);
        if (shape.width == Width && on_tensor_cores(x)) {
          run(attend_bf16<S, few>, plan_.narrow, few::threads, attend_bf16_bytes<few>);
          run(attend_bf16<S, many>, plan_.wide, many::threads, attend_bf16_bytes<many>);
          done = true;
        }
      }
      if (!done) {
        plan(wide::left, narrow::left);
        run(attend<T, S, narrow>, plan_.narrow, attention_threads, shapes::template shared_bytes<narrow>);
        if constexpr (!std::is_same_v<wide, narrow>)
          run(attend<T, S, wide>, plan_.wide, attention_threads, shapes::template shared_bytes<wide>);
      }
      const attention_join* const joins = device().stage(std::span<const attention_join>(plan_.joins));
      simt::launch(join_parts<T, S, narrow>, blocks(plan_.joins.size(), shape), attention_threads, 0, device().stream(), x,
                   joins);
    });
  }
  /// Whether the kernels for tensor cores can have the rows: they load 16 bytes at once.
  template <class T, class S>
  bool on_tensor_cores(const attention_operands<T, S>& x) const {
    const auto keys_aligned = [&](const attention_task& t) {
      return rows_aligned(static_cast<const T*>(t.keys), x.key_stride, 16) &&
             rows_aligned(static_cast<const T*>(t.values), x.value_stride, 16);
    };
    return rows_aligned(x.q.data, x.q.stride, 16) && rows_aligned(x.o.data, x.o.stride, 4) &&
           std::all_of(plan_.wide.begin(), plan_.wide.end(), keys_aligned) &&
           std::all_of(plan_.narrow.begin(), plan_.narrow.end(), keys_aligned);
  }
  static dim3 blocks(std::size_t tasks, attention_shape shape) {
    return dim3(static_cast<unsigned>(static_cast<index>(tasks) * shape.kv_heads));
  }

  attention_plan plan_;
  std::vector<std::int32_t> steps_;       // of all lanes
  std::vector<std::size_t> steps_begin_;  // where those of a lane begin
};

}  // namespace detail

GYRE_END
