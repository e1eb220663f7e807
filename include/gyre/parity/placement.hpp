// Operands in a backend's memory, as unkind as the contract allows: misaligned, strided, with guards around them, and garbage
// where results are to come.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gyre/core/context.hpp>
#include <gyre/parity/tensor.hpp>

GYRE_BEGIN
namespace parity {

/// Moves bytes between the host and a backend's memory. A backend whose memory the host cannot touch specialises it.
template <class B>
struct transfer {
  static void to_device(B&, std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  static void from_device(B&, std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  /// Waits for what has been called.
  static void finish(B& device) { device.finish(); }
};

/// Where operands lie, and what is around them.
struct placement {
  index gap = 0;       // elements between the rows of a matrix
  index offset = 0;    // elements between an aligned address and the first
  bool again = false;  // other garbage and other guards: results must not depend on them
};

namespace detail {

inline constexpr std::size_t guard_bytes = 256;

/// What outputs hold before a call: a NaN that no arithmetic makes, or a large number; far outside as a place.
inline void fill_garbage(std::byte* to, dtype type, bool again) {
  const auto store = [&](auto x) { std::memcpy(to, &x, sizeof x); };
  switch (type) {
    case dtype::f32:
      return store(again ? std::uint32_t{0x4A3DEADB} : std::uint32_t{0x7FDEADBE});
    case dtype::f64:
      return store(again ? std::uint64_t{0x414DEADBEEF12345} : std::uint64_t{0x7FFDEADBEEFDEAD1});
    case dtype::bf16:
      return store(again ? std::uint16_t{0x4A3D} : std::uint16_t{0x7FDE});
    default:
      return store(again ? std::uint32_t{0x3EADBEEF} : std::uint32_t{0x5EADBEEF});
  }
}

/// One operand inside its guards. An image of the memory is kept on the host.
template <class B>
class region {
 public:
  region(B& device, tensor contents, index gap, const placement& where)
      : device_(&device), contents_(std::move(contents)), again_(where.again) {
    const std::size_t item = contents_.item();
    gap = contents_.rows > 1 ? gap : 0;
    first_ = guard_bytes + static_cast<std::size_t>(where.offset) * item;
    stride_ = contents_.cols + gap;
    const index extent = contents_.size() > 0 ? (contents_.rows - 1) * stride_ + contents_.cols : 0;
    image_.assign(first_ + static_cast<std::size_t>(extent) * item + guard_bytes, guard());
    const bool garbage = contents_.how == access::output;
    for (index i = 0; i < contents_.size(); ++i) {
      if (garbage) fill_garbage(image_.data() + place(i), contents_.type, again_);
      if (garbage) continue;
      std::memcpy(image_.data() + place(i), contents_.bytes.data() + static_cast<std::size_t>(i) * item, item);
    }
    memory_ = device.allocate(image_.size());
    transfer<B>::to_device(device, memory_, image_.data(), image_.size());
  }
  ~region() { device_->deallocate(memory_, image_.size()); }
  region(const region&) = delete;
  region& operator=(const region&) = delete;

  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(memory_ + first_);
  }
  index stride() const { return stride_; }
  const tensor& contents() const { return contents_; }

  /// Reads the memory back. Returns what is wrong with it: what was written outside, or into an input; empty if nothing.
  std::string read_back() {
    std::vector<std::byte> now(image_.size());
    transfer<B>::from_device(*device_, now.data(), memory_, now.size());
    const std::size_t item = contents_.item();
    std::string wrong;
    if (contents_.how == access::input && now != image_) {
      wrong = changed(now, "input");
    } else {
      contents_.bytes.resize(static_cast<std::size_t>(contents_.size()) * item);
      for (index i = 0; i < contents_.size(); ++i) {
        std::memcpy(contents_.bytes.data() + static_cast<std::size_t>(i) * item, now.data() + place(i), item);
        std::memcpy(image_.data() + place(i), now.data() + place(i), item);
      }
      if (now != image_) wrong = changed(now, "outside");
    }
    return wrong;
  }
  /// The operand is another one's output too.
  void becomes(access how) {
    if (how != access::input) contents_.how = access::updated;
  }

 private:
  std::byte guard() const { return again_ ? std::byte{0xA5} : std::byte{0xFF}; }
  std::size_t place(index i) const {
    return first_ + static_cast<std::size_t>(i / contents_.cols * stride_ + i % contents_.cols) * contents_.item();
  }
  std::string changed(const std::vector<std::byte>& now, const char* what) const {
    const auto at = std::mismatch(now.begin(), now.end(), image_.begin()).first - now.begin();
    const auto distance = (at - static_cast<std::ptrdiff_t>(first_)) / static_cast<std::ptrdiff_t>(contents_.item());
    return std::string(what) + ": " + contents_.name + " (" + std::to_string(contents_.rows) + " x " +
           std::to_string(contents_.cols) + ", stride " + std::to_string(stride_) + ") was written at element " +
           std::to_string(distance) + " from its first";
  }

  B* device_;
  tensor contents_;
  bool again_;
  std::size_t first_ = 0;  // bytes
  index stride_ = 0;
  std::vector<std::byte> image_;
  std::byte* memory_ = nullptr;
};

}  // namespace detail

/// The visitor that gives a call copies of its operands in the memory of a backend. Operands that share their memory in the
/// original share it here.
template <class B>
class placed {
 public:
  using backend = B;
  placed(B& device, const placement& where) : device_(device), where_(where) {}

  template <class T>
  auto input(std::string_view name, matrix_view<const T> x) {
    return view<const T>(put(name, access::input, x, true), x);
  }
  template <class T>
  const T* input(std::string_view name, const T* x, index count) {
    return x == nullptr ? nullptr : put(name, access::input, matrix_view<const T>(x, 1, count), false).template data<const T>();
  }
  template <class T>
  auto output(std::string_view name, matrix_view<T> x) {
    return view<T>(put(name, access::output, matrix_view<const T>(x), true), x);
  }
  template <class T>
  T* output(std::string_view name, T* x, index count) {
    return vector(name, access::output, x, count);
  }
  template <class T>
  auto updated(std::string_view name, matrix_view<T> x) {
    return view<T>(put(name, access::updated, matrix_view<const T>(x), true), x);
  }
  template <class T>
  T* updated(std::string_view name, T* x, index count) {
    return vector(name, access::updated, x, count);
  }
  template <class T>
  auto accumulated(std::string_view name, matrix_view<T> x, bool accumulate) {
    return accumulate ? updated(name, x) : output(name, x);
  }
  template <class T>
  T* accumulated(std::string_view name, T* x, index count, bool accumulate) {
    return vector(name, accumulate ? access::updated : access::output, x, count);
  }

  /// Matrices of groups lie as far apart as they did.
  template <class T, class Prepared>
  auto weight(std::string_view name, weight_matrix<T, Prepared> w, row_groups groups = {nullptr, 1, 0}) {
    const matrix_view<const T> whole = detail::spread_out(w.raw, groups);
    detail::region<B>& r = put(name, access::input, whole, groups.stride == 0);
    const index stride = groups.stride == 0 ? r.stride() : w.raw.stride;
    using other = typename B::template prepared<T>;
    return weight_matrix<T, other>{{r.template data<const T>(), w.raw.rows, w.raw.cols, stride}, nullptr};
  }
  template <class T>
  auto weight_gradient(std::string_view name, matrix_view<T> dw, row_groups groups) {
    detail::region<B>& r = put(name, access::updated, detail::spread_out(matrix_view<const T>(dw), groups), false);
    return matrix_view<T>(r.template data<T>(), dw.rows, dw.cols, dw.stride);
  }
  row_groups groups(row_groups g) {
    return {input("offsets", g.offsets, g.offsets == nullptr ? 0 : g.count + 1), g.count, g.stride};
  }
  template <class T>
  std::span<const cache_lane<T>> lanes(std::string_view name, std::span<const cache_lane<T>> all, index width, bool written) {
    auto copies = std::make_shared<std::vector<cache_lane<T>>>();
    for (const cache_lane<T>& lane : all)
      copies->push_back({put(name, written ? access::updated : access::input,
                             matrix_view<const T>(lane.base, 1, width * lane.capacity), false)
                             .template data<T>(),
                         lane.capacity, lane.steps_run});
    kept_.push_back(copies);
    return *copies;
  }
  template <class X>
  std::span<const X> host(std::string_view, std::span<const X> x) {
    return x;
  }
  template <class T>
  const T* host(std::string_view, const T* x, index) {
    return x;
  }
  template <class T>
  T scalar(T x) {
    return x;
  }
  template <class T>
  T* workspace(T* given, index count) {
    if (count == 0) return given == nullptr ? nullptr : vector("workspace", access::output, given, 0);
    const std::vector<T> nothing(static_cast<std::size_t>(count));
    detail::region<B>& r = add(detail::copy_of<T>("workspace", access::output, {nothing.data(), 1, count}), false);
    return r.template data<T>();
  }

  /// All operands, in the order of the call; workspaces are among them.
  std::deque<detail::region<B>>& operands() { return regions_; }

 private:
  template <class T>
  static matrix_view<T> view(const detail::region<B>& r, matrix_view<T> like) {
    return {r.template data<T>(), like.rows, like.cols, r.stride()};
  }
  template <class T>
  T* vector(std::string_view name, access how, T* x, index count) {
    return x == nullptr ? nullptr : put(name, how, matrix_view<const T>(x, 1, count), false).template data<T>();
  }
  template <class T>
  detail::region<B>& put(std::string_view name, access how, matrix_view<const T> x, bool matrix) {
    if (x.size() > 0)
      for (auto& [from, r] : known_)
        if (from == x.data && r->contents().rows == x.rows && r->contents().cols == x.cols) {
          r->becomes(how);
          return *r;
        }
    detail::region<B>& r = add(detail::copy_of<T>(name, how, x), matrix);
    if (x.size() > 0) known_.push_back({x.data, &r});
    return r;
  }
  detail::region<B>& add(tensor contents, bool matrix) {
    return regions_.emplace_back(device_, std::move(contents), matrix ? where_.gap : 0, where_);
  }

  B& device_;
  placement where_;
  std::deque<detail::region<B>> regions_;
  std::vector<std::pair<const void*, detail::region<B>*>> known_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace parity
GYRE_END
