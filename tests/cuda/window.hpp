// Index arithmetic beyond 2^31, and beyond 2^32 for what has no sign: operations on arrays that are larger than the machine, of
// which the last two blocks of a grid run.
//
// Arrays are sparse, and only what is touched takes memory. What the last blocks write must have the bits that the same
// operation writes on a small copy of the arrays' ends, which parity trials compare with the reference.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "suite.hpp"

namespace gyre_test {

inline constexpr gyre::index beyond = gyre::index{1} << 32;  // elements: no 32 bits hold larger offsets, with a sign or without

/// Runs `call`, whose launch has `blocks` blocks, with the last `count` of them alone.
template <class Call>
void run_last_blocks(shuffled_device& device, gyre::index blocks, Call call, std::uint64_t count = 2) {
  auto& machine = device.machine();
  const auto before = machine.counts().blocks;
  machine.settings.blocks = {static_cast<std::uint64_t>(blocks) - count, count};
  call();
  machine.settings.blocks = {};
  REQUIRE(machine.counts().blocks == before + count);
}

/// `count` elements of device memory. The last ones are `ending`.
template <class T>
class large_array {
 public:
  large_array(shuffled_device& device, gyre::index count, std::span<const T> ending, const char* name = "large array")
      : memory_(device.machine().allocate<T>(static_cast<std::size_t>(count), name)), before_(ending.begin(), ending.end()) {
    std::copy(ending.begin(), ending.end(), memory_.end() - ending.size());
  }
  T* data() const { return memory_.data(); }
  std::span<const T> ending() const { return {memory_.end() - before_.size(), before_.size()}; }

  /// The last element was written; and so were others, as in `expected`, or they are what they were.
  void check(std::span<const T> expected) const {
    const auto same = [](const T& a, const T& b) { return std::memcmp(&a, &b, sizeof(T)) == 0; };
    const std::span<const T> now = ending();
    REQUIRE(expected.size() == now.size());
    std::size_t written = 0, wrong = 0;
    for (std::size_t n = 0; n < now.size(); ++n) {
      if (same(now[n], before_[n])) continue;
      ++written;
      wrong += !same(now[n], expected[n]);
    }
    CHECK(written > 0);
    CHECK(wrong == 0);
    CHECK(same(now.back(), expected.back()));
    CHECK(!same(now.back(), before_.back()));
  }

 private:
  gyre::simt::device_array<T> memory_;
  std::vector<T> before_;
};

/// The visitor of a call's operands (parity/signature.hpp) that puts matrices of `ending` rows, and what has an entry for each
/// of them, behind so many other rows that offsets pass `beyond`. Other operands stay small.
class enlarged {
 public:
  using backend = shuffled_cuda;
  enlarged(shuffled_device& device, gyre::index ending, gyre::index cols)
      : device_(device), ending_(ending), rows_(beyond / cols + ending + 1) {}

  gyre::index rows() const { return rows_; }

  template <class T>
  auto input(std::string_view, gyre::matrix_view<const T> x) {
    return gyre::matrix_view<const T>(put(x, gyre::parity::access::input));
  }
  template <class T>
  const T* input(std::string_view, const T* x, gyre::index count) {
    return x == nullptr ? nullptr : put(per_row(x, count), gyre::parity::access::input).data;
  }
  template <class T>
  auto output(std::string_view, gyre::matrix_view<T> x) {
    return put(gyre::matrix_view<const T>(x), gyre::parity::access::output);
  }
  template <class T>
  T* output(std::string_view, T* x, gyre::index count) {
    return x == nullptr ? nullptr : put(per_row(static_cast<const T*>(x), count), gyre::parity::access::output).data;
  }
  template <class T>
  auto updated(std::string_view, gyre::matrix_view<T> x) {
    return put(gyre::matrix_view<const T>(x), gyre::parity::access::updated);
  }
  template <class T>
  T* updated(std::string_view, T* x, gyre::index count) {
    return x == nullptr ? nullptr : put(per_row(static_cast<const T*>(x), count), gyre::parity::access::updated).data;
  }
  template <class X>
  std::span<const X> host(std::string_view, std::span<const X> x) {
    if (static_cast<gyre::index>(x.size()) != ending_) return x;
    auto all = std::make_shared<std::vector<X>>(static_cast<std::size_t>(rows_ - ending_));
    all->insert(all->end(), x.begin(), x.end());
    kept_.push_back(all);
    return *all;
  }
  template <class T>
  T scalar(T x) {
    return x;
  }

  /// Compares the outputs with those of the small call, in their order.
  void check(const std::vector<gyre::parity::tensor>& expected) const {
    REQUIRE(expected.size() == checks_.size());
    for (std::size_t n = 0; n < checks_.size(); ++n) {
      INFO(expected[n].name);
      checks_[n](expected[n]);
    }
  }

 private:
  /// A vector as a matrix of one row, or of a row for each row of the matrices.
  template <class T>
  gyre::matrix_view<const T> per_row(const T* x, gyre::index count) const {
    return count % ending_ == 0 && count <= 2 * ending_ ? gyre::matrix_view<const T>(x, ending_, count / ending_)
                                                        : gyre::matrix_view<const T>(x, 1, count);
  }
  template <class T>
  gyre::matrix_view<T> put(gyre::matrix_view<const T> x, gyre::parity::access how) {
    REQUIRE(x.contiguous());
    const gyre::index rows = x.rows == ending_ ? rows_ : x.rows;
    std::vector<T> ending(x.data, x.data + x.size());
    if (how == gyre::parity::access::output)
      for (T& each : ending)
        gyre::parity::detail::fill_garbage(reinterpret_cast<std::byte*>(&each), gyre::dtype_of<T>(), false);
    auto memory = std::make_shared<large_array<T>>(device_, rows * x.cols, std::span<const T>(ending));
    if (how != gyre::parity::access::input)
      checks_.push_back([memory](const gyre::parity::tensor& expected) {
        std::vector<T> values(expected.bytes.size() / sizeof(T));
        std::memcpy(values.data(), expected.bytes.data(), expected.bytes.size());
        memory->check(values);
      });
    kept_.push_back(memory);
    return {memory->data(), rows, x.cols};
  }

  shuffled_device& device_;
  gyre::index ending_, rows_;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<std::function<void(const gyre::parity::tensor&)>> checks_;
};

/// A trial's operation whose matrices have so many rows that offsets pass `beyond`: the last two blocks of its one launch run.
/// `of_trial` are its sizes: "rows" the few rows at the end that are compared, and wide ones. blocks(rows): of the large launch.
template <class T, gyre::operation Op, class Blocks>
void check_last_blocks(std::initializer_list<std::pair<std::string, gyre::index>> of_trial, gyre::index cols, Blocks blocks) {
  namespace parity = gyre::parity;
  INFO(gyre::operation_names[static_cast<std::size_t>(Op)]);
  const parity::trial t{Op, std::string(parity::type_name<T>()), 12, of_trial};
  parity::bench<T> b(t);
  const auto arguments = parity::setting<Op>::arguments(b);
  shuffled_cuda device;
  enlarged large(device.device(), t["rows"], cols);
  const auto map = [&](const auto&... a) { return parity::signature<Op>::map(large, a...); };
  const auto call = [&](const auto&... a) { parity::signature<Op>::call(device, a...); };
  const auto operands = std::apply(map, arguments);
  run_last_blocks(device.device(), blocks(large.rows()), [&] { std::apply(call, operands); });
  const auto small = [&](const auto&... a) { return parity::detail::run_once<Op>(device, parity::placement{}, a...); };
  const auto run = std::apply(small, arguments);
  REQUIRE(run.findings.empty());
  large.check(run.outputs);
}

}  // namespace gyre_test
