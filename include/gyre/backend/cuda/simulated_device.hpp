// A device without a GPU: the interpreter's machine runs the kernels, and library calls have plain stand-ins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>

#include <gyre/backend/cuda/kernels/device.cuh>
#include <gyre/backend/reference/products.hpp>
#include <gyre/simt.hpp>

GYRE_BEGIN

/// Needs target gyre::simt or gyre::simt_race. Every object of device memory lies between gaps, and is full of garbage at
/// first.
class simulated_device {
 public:
  explicit simulated_device(const simt::options& settings = {}) : machine_(settings) {}
  simulated_device(const simulated_device&) = delete;
  simulated_device& operator=(const simulated_device&) = delete;

  /// Settings, faults and counts of the machine.
  simt::machine& machine() { return machine_; }
  simt::stream stream() { return &machine_; }
  /// Kernels end before their launch returns.
  void finish() {}

  std::byte* allocate(std::size_t bytes) {
    bytes_array memory = machine_.allocate<std::byte>(bytes, "allocation");
    std::byte* const data = memory.data();
    allocations_.emplace(data, std::move(memory));
    return data;
  }
  void deallocate(std::byte* memory) noexcept { allocations_.erase(memory); }

  /// A copy of host memory that kernels may read until as many others have been made as `staged_at_once`.
  template <class X>
  const X* stage(std::span<const X> from) {
    static_assert(std::is_trivially_copyable_v<X>);
    if (from.empty()) return nullptr;
    staged_.push_back(machine_.allocate<std::byte>(from.size_bytes(), "host array"));
    std::memcpy(staged_.back().data(), from.data(), from.size_bytes());
    if (staged_.size() > staged_at_once) staged_.pop_front();
    return reinterpret_cast<const X*>(staged_.back().data());
  }
  static constexpr std::size_t staged_at_once = 16;

  /// Scratch memory of one operation, until the next call; what it holds is not kept.
  template <class X>
  X* workspace(index count) {
    workspace_.reset();
    workspace_.emplace(machine_.allocate<std::byte>(sizeof(X) * static_cast<std::size_t>(count), "workspace"));
    return reinterpret_cast<X*>(workspace_->data());
  }

  /// C (m, n) = op(A) op(B), added to what C holds if `accumulate`, and otherwise without reading it. A is (m, depth), or
  /// (depth, m) and op transposes it where `transposed_a`; B is (depth, n), or (n, depth) where `transposed_b`. All lie by rows,
  /// in device memory, and any may be part of a wider matrix (stride >= cols where there is more than one row; a stride means
  /// nothing where there is not); sizes may be 0, pointers need only their scalar's alignment, C does not overlap the factors.
  /// The caller has checked that sizes meet. Sums accumulate in compute_t<A> and are rounded to C's scalar once, with the old
  /// value in them. The same call has the same bits whenever it is repeated; called between kernels of stream().
  ///
  /// (A, C) are (float, float), (double, double), (bf16, bf16) and (bf16, float). A library's product on a GPU; here a stand-in.
  template <class A, class C>
  void multiply(matrix_view<const A> a, bool transposed_a, matrix_view<const A> b, bool transposed_b, matrix_view<C> c,
                bool accumulate) {
    using sum_type = detail::compute_t<A>;
    const index depth = transposed_a ? a.rows : a.cols;
    const index along_a = transposed_a ? a.stride : 1, along_b = transposed_b ? 1 : b.stride;
    for (index i = 0; i < c.rows; ++i)
      for (index j = 0; j < c.cols; ++j) {
        const A* const row = transposed_a ? a.data + i : a[i];
        const A* const column = transposed_b ? b[j] : b.data + j;
        sum_type sum(0);
        for (index k = 0; k < depth; ++k) sum += detail::widen(row[k * along_a]) * detail::widen(column[k * along_b]);
        c[i][j] = detail::narrow<C>(accumulate ? detail::widen(c[i][j]) + sum : sum);
      }
  }
  /// Bytes of device memory that sort_by_key needs beside its arrays.
  std::size_t sort_bytes(index count, int) { return sizeof(index) * static_cast<std::size_t>(count); }
  /// Sorts pairs by their keys, ascending; pairs of equal keys keep their order. Keys lie in [0, 2^bits). `keys` and `values`
  /// are kept; no two arrays overlap. `temporary`: sort_bytes(count, bits) bytes, aligned to 256.
  void sort_by_key(const std::int32_t* keys, const std::int32_t* values, std::int32_t* sorted_keys, std::int32_t* sorted_values,
                   index count, int, std::byte* temporary) {
    const std::span<index> order(reinterpret_cast<index*>(temporary), static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), index{0});
    std::stable_sort(order.begin(), order.end(), [=](index a, index b) { return keys[a] < keys[b]; });
    for (index i = 0; i < count; ++i) {
      const index from = order[static_cast<std::size_t>(i)];
      sorted_keys[i] = keys[from], sorted_values[i] = values[from];
    }
  }

 private:
  using bytes_array = simt::device_array<std::byte>;

  simt::machine machine_;
  std::map<std::byte*, bytes_array> allocations_;
  std::deque<bytes_array> staged_;
  std::optional<bytes_array> workspace_;
};

GYRE_END
