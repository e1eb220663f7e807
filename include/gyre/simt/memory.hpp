// Device memory: what kernels may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gyre_simt {

namespace detail {

struct object;
struct region;
struct memory_books;

inline constexpr std::size_t gap_bytes = 256;  // between objects: more than a warp's widest access strays

// Pages with a gap before and behind `bytes` bytes of garbage.
std::byte* map_guarded(std::size_t bytes);
void unmap_guarded(std::byte* data, std::size_t bytes);

}  // namespace detail

/// Regions hold objects; a kernel may touch objects only. Objects have gaps between them, so one that is overrun does not reach
/// the next. The memory itself belongs to whoever registers it. Misuse throws std::logic_error.
class memory_table {
 public:
  memory_table();
  ~memory_table();
  memory_table(const memory_table&) = delete;
  memory_table& operator=(const memory_table&) = delete;

  /// Memory from `begin` on becomes a region without objects: forbidden until objects are added. It must not overlap another
  /// region, and begin at a multiple of 4 bytes, which a race cell covers.
  void add_region(const void* begin, std::size_t bytes);
  void remove_region(const void* begin);
  /// `bytes` bytes at `begin`, inside a region, may be touched from now on. Freed objects that lay there are forgotten.
  /// `guarded`: 256 bytes before and behind hold fill_gap()'s pattern, so that a stray write shows without instrumentation.
  void add_object(const void* begin, std::size_t bytes, std::string name, bool guarded = false);
  /// The object at `begin` may not be touched any more; it is remembered so that an access can be explained.
  void free_object(const void* begin);
  static void fill_gap(void* begin, std::size_t bytes);
  static void fill_garbage(void* begin, std::size_t bytes);

  bool empty() const;
  detail::memory_books& books() { return *books_; }

 private:
  std::unique_ptr<detail::memory_books> books_;
};

/// Device memory for `count` elements of T, filled with garbage (bytes of 0xFF: NaN, or -1), with a gap before and after it.
/// More than 64 MiB stay sparse: only what is touched takes memory, and reads as zero. It must not outlive the machine.
template <class T>
class device_array {
 public:
  device_array(memory_table& table, std::size_t count, std::string name)
      : table_(&table), data_(detail::map_guarded(sizeof(T) * count)), count_(count) {
    table.add_region(data_ - detail::gap_bytes, sizeof(T) * count + 2 * detail::gap_bytes);
    table.add_object(data_, sizeof(T) * count, std::move(name), true);
  }
  device_array(device_array&& other) noexcept
      : table_(other.table_), data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  device_array& operator=(device_array&&) = delete;
  ~device_array() {
    if (data_ == nullptr) return;
    table_->remove_region(data_ - detail::gap_bytes);
    detail::unmap_guarded(data_, sizeof(T) * count_);
  }

  T* data() const { return reinterpret_cast<T*>(data_); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }

 private:
  memory_table* table_;
  std::byte* data_;
  std::size_t count_;
};

/// A stack of device memory whose objects have gaps between them, and whose freed frames may not be touched.
class guarded_arena {
 public:
  guarded_arena(memory_table& table, std::size_t bytes);
  guarded_arena(guarded_arena&&) = delete;
  ~guarded_arena();

  /// `count` elements, filled with garbage. Throws std::length_error if they do not fit with their gap.
  template <class T>
  T* take(std::size_t count, std::string name) {
    return reinterpret_cast<T*>(take_bytes(sizeof(T) * count, std::move(name)));
  }
  std::size_t mark() const { return live_.size(); }
  /// Frees everything taken since mark() returned `mark`.
  void release(std::size_t mark);

 private:
  struct taken {
    std::size_t begin, top_before;
  };
  std::byte* take_bytes(std::size_t bytes, std::string name);

  memory_table* table_;
  std::byte* data_;
  std::size_t bytes_, top_ = 0;
  std::vector<taken> live_;
};

}  // namespace gyre_simt
