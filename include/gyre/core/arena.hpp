// Memory of a pass: stack arenas for activations, and a host-side stack for the records (tapes) that point into them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// A stack of device memory. Taking is pointer arithmetic; nothing is freed but by release() back to a mark. The memory belongs
/// to whoever made the arena. A counting arena has no memory: its addresses only keep the books (dry runs) and must not be read.
class arena {
 public:
  static constexpr std::size_t alignment = 64;  // bytes: one cache line, and the widest vector register

  arena() = default;
  arena(std::byte* memory, std::size_t bytes) : base_(reinterpret_cast<std::uintptr_t>(memory)), capacity_(bytes) {}
  static arena counting() {
    arena a;
    a.base_ = std::uintptr_t{1} << 40;
    a.capacity_ = std::size_t{1} << 60;
    return a;
  }

  /// Uninitialised memory for `count` scalars. Throws gyre::error if the arena is too small: then the pass needed more than the
  /// plan that sized the arena, which is a fault of the plan.
  template <class T>
  T* take(index count) {
    const std::size_t begin = (top_ + alignment - 1) / alignment * alignment;
    const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(count);
    if (begin > capacity_ || bytes > capacity_ - begin)
      fail("arena: ", bytes, " bytes do not fit above ", begin, " of ", capacity_, "; plan for these tokens and steps first");
    top_ = begin + bytes;
    peak_ = (std::max)(peak_, top_);
    return reinterpret_cast<T*>(base_ + begin);
  }
  template <class T, int Cols>
  rows<T, Cols> take_rows(index count) {
    return {take<T>(count * Cols), count};
  }

  std::size_t mark() const { return top_; }
  void release(std::size_t mark) { top_ = mark; }
  std::size_t peak() const { return peak_; }
  std::size_t capacity() const { return capacity_; }
  /// Empties the arena and forgets its peak.
  void reset() { top_ = peak_ = 0; }

 private:
  std::uintptr_t base_ = 0;
  std::size_t capacity_ = 0, top_ = 0, peak_ = 0;
};

/// A stack of host memory for trivially destructible records. It grows by blocks and keeps them, so a second pass of the same
/// size allocates nothing.
class record_stack {
 public:
  /// `count` value-initialised records.
  template <class T>
  T* take(index count) {
    static_assert(std::is_trivially_destructible_v<T>, "record_stack: records are dropped, never destroyed");
    static_assert(alignof(T) <= alignof(std::max_align_t));
    const std::size_t bytes = (std::max)(sizeof(T) * static_cast<std::size_t>(count), std::size_t{1});
    const std::size_t padded = (bytes + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) * alignof(std::max_align_t);
    while (block_ < blocks_.size() && blocks_[block_].size - used_ < padded) ++block_, used_ = 0;
    if (block_ == blocks_.size()) {
      const std::size_t size = (std::max)(padded, smallest_block);
      blocks_.push_back({std::make_unique<std::byte[]>(size), size});
      used_ = 0;
    }
    T* first = reinterpret_cast<T*>(blocks_[block_].memory.get() + used_);
    for (index i = 0; i < count; ++i) ::new (static_cast<void*>(first + i)) T{};
    used_ += padded;
    return first;
  }
  struct position {
    std::size_t block = 0, used = 0;
  };
  position mark() const { return {block_, used_}; }
  void release(position p) { block_ = p.block, used_ = p.used; }

 private:
  static constexpr std::size_t smallest_block = std::size_t{1} << 14;
  struct block {
    std::unique_ptr<std::byte[]> memory;
    std::size_t size = 0;
  };
  std::vector<block> blocks_;
  std::size_t block_ = 0, used_ = 0;
};

/// Gives back at the end of a scope what was taken from a stack inside it.
template <class Stack>
class frame {
 public:
  explicit frame(Stack& stack) : stack_(stack), mark_(stack.mark()) {}
  ~frame() { stack_.release(mark_); }
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;

 private:
  Stack& stack_;
  decltype(std::declval<Stack&>().mark()) mark_;
};

GYRE_END
