// Operations whose matrices have rows that lie so far apart that offsets pass 2^32: the same bits as rows that lie close.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "suite.hpp"

namespace gyre_test {

/// The visitor of a call's operands (parity/signature.hpp) that puts the rows of each matrix far apart, in sparse memory; the last row
/// begins beyond 2^32 elements. Vectors, and matrices of one row, lie as they do.
class far_apart {
 public:
  using backend = shuffled_cuda;
  explicit far_apart(shuffled_device& device) : device_(device) {}

  template <class T>
  auto input(std::string_view name, gyre::matrix_view<const T> x) {
    return gyre::matrix_view<const T>(put(name, x, false));
  }
  template <class T>
  const T* input(std::string_view name, const T* x, gyre::index count) {
    return vector(name, x, count, false);
  }
  template <class T>
  auto output(std::string_view name, gyre::matrix_view<T> x) {
    return put(name, gyre::matrix_view<const T>(x), true);
  }
  template <class T>
  T* output(std::string_view name, T* x, gyre::index count) {
    return vector(name, static_cast<const T*>(x), count, true);
  }
  template <class... A>
  auto updated(std::string_view name, A... a) {
    return output(name, a...);
  }
  template <class T>
  auto accumulated(std::string_view name, gyre::matrix_view<T> x, bool) {
    return output(name, x);
  }
  template <class T>
  T* accumulated(std::string_view name, T* x, gyre::index count, bool) {
    return output(name, x, count);
  }
  template <class T, class Prepared>
  auto weight(std::string_view name, gyre::weight_matrix<T, Prepared> w, gyre::row_groups groups = {nullptr, 1, 0}) {
    using other = typename backend::template prepared<T>;
    const auto whole = gyre::parity::detail::spread_out(w.raw, groups);
    const auto own = vector(name, whole.data, whole.size(), false);
    return gyre::weight_matrix<T, other>{{own, w.raw.rows, w.raw.cols, w.raw.stride}, nullptr};
  }
  gyre::row_groups groups(gyre::row_groups g) { return {vector("offsets", g.offsets, g.count + 1, false), g.count, g.stride}; }
  template <class X>
  std::span<const X> host(std::string_view, std::span<const X> x) {
    return x;
  }
  template <class T>
  const T* host(std::string_view, const T* x, gyre::index) {
    return x;
  }
  template <class T>
  T scalar(T x) {
    return x;
  }
  template <class T>
  T* workspace(T*, gyre::index count) {
    return take<T>(static_cast<std::size_t>(count), "workspace");
  }

  /// Compares the outputs with those of rows that lie close.
  void check(const std::vector<gyre::parity::tensor>& expected) const {
    REQUIRE(expected.size() == checks_.size());
    for (std::size_t n = 0; n < checks_.size(); ++n) {
      INFO(expected[n].name);
      CHECK(checks_[n](expected[n]));
    }
  }
  /// Matrices whose last row lies beyond 2^32 elements.
  int matrices() const { return matrices_; }

 private:
  template <class T>
  T* take(std::size_t count, std::string_view name) {
    auto memory = std::make_shared<gyre::simt::device_array<T>>(
        device_.machine().allocate<T>((std::max)(count, std::size_t{1}), std::string(name).c_str()));
    kept_.push_back(memory);
    return memory->data();
  }
  template <class T>
  std::remove_const_t<T>* vector(std::string_view name, T* x, gyre::index count, bool written) {
    using value = std::remove_const_t<T>;
    return x == nullptr ? nullptr : put(name, gyre::matrix_view<const value>(x, 1, count), written).data;
  }
  template <class T>
  gyre::matrix_view<T> put(std::string_view name, gyre::matrix_view<const T> x, bool written) {
    // Rows are aligned as those that lie close, so that kernels take them in the same packs.
    const gyre::index steps = x.rows - 1, distance = steps > 0 ? (first_beyond / steps / 64 + 1) * 64 + x.cols % 64 : x.cols;
    const auto same = std::find_if(known_.begin(), known_.end(), [&](const known& k) {
      return x.size() > 0 && k.from == x.data && k.rows == x.rows;  // in place
    });
    T* data = nullptr;
    if (same != known_.end()) {
      data = static_cast<T*>(same->there);
    } else {
      data = take<T>(static_cast<std::size_t>((std::max)(steps, gyre::index{0}) * distance + x.cols), name);
      for (gyre::index i = 0; i < x.rows; ++i) std::copy(x[i], x[i] + x.cols, data + i * distance);
      known_.push_back({x.data, data, x.rows});
      matrices_ += steps > 0;
    }
    const gyre::matrix_view<T> there(data, x.rows, x.cols, distance);
    if (written)
      checks_.push_back([there](const gyre::parity::tensor& expected) {
        const std::size_t row = sizeof(T) * static_cast<std::size_t>(there.cols);
        for (gyre::index i = 0; i < there.rows; ++i)
          if (std::memcmp(there[i], expected.bytes.data() + static_cast<std::size_t>(i) * row, row) != 0) return false;
        return true;
      });
    return there;
  }

  static constexpr gyre::index first_beyond = gyre::index{1} << 32;  // no 32 bits hold it, with a sign or without
  struct known {
    const void* from;
    void* there;
    gyre::index rows;
  };
  shuffled_device& device_;
  int matrices_ = 0;
  std::vector<known> known_;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<std::function<bool(const gyre::parity::tensor&)>> checks_;
};

/// A trial's operation, its rows close together and far apart.
template <class T, gyre::operation Op>
void check_far_apart(std::initializer_list<std::pair<std::string, gyre::index>> of_trial) {
  namespace parity = gyre::parity;
  INFO(gyre::operation_names[static_cast<std::size_t>(Op)]);
  const parity::trial t{Op, std::string(parity::type_name<T>()), 12, of_trial};
  parity::bench<T> b(t);
  const auto arguments = parity::setting<Op>::arguments(b);
  shuffled_cuda device;
  const auto small = [&](const auto&... a) { return parity::detail::run_once<Op>(device, parity::placement{}, a...); };
  const auto run = std::apply(small, arguments);
  REQUIRE(run.findings.empty());
  far_apart far(device.device());
  const auto operands = std::apply([&](const auto&... a) { return parity::signature<Op>::map(far, a...); }, arguments);
  std::apply([&](const auto&... a) { parity::signature<Op>::call(device, a...); }, operands);
  CHECK(far.matrices() > 0);
  far.check(run.outputs);
}

}  // namespace gyre_test
