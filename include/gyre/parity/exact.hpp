// The same call in the reference's bounded numbers: what its outputs should be, and how far they may be off.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/parity/tensor.hpp>

GYRE_BEGIN
namespace parity {

/// The visitor that gives a call copies of its operands in bounded numbers.
class in_bounded_numbers {
 public:
  using backend = reference;

  template <class T>
  auto input(std::string_view name, matrix_view<const T> x) {
    return matrix_view<const detail::bounded_t<T>>(put(name, access::input, x));
  }
  template <class T>
  const detail::bounded_t<T>* input(std::string_view name, const T* x, index count) {
    return x == nullptr ? nullptr : put(name, access::input, matrix_view<const T>(x, 1, count)).data;
  }
  template <class T>
  auto output(std::string_view name, matrix_view<T> x) {
    return put(name, access::output, matrix_view<const T>(x));
  }
  template <class T>
  detail::bounded_t<T>* output(std::string_view name, T* x, index count) {
    return vector(name, access::output, x, count);
  }
  template <class T>
  auto updated(std::string_view name, matrix_view<T> x) {
    return put(name, access::updated, matrix_view<const T>(x));
  }
  template <class T>
  detail::bounded_t<T>* updated(std::string_view name, T* x, index count) {
    return vector(name, access::updated, x, count);
  }
  template <class T>
  auto accumulated(std::string_view name, matrix_view<T> x, bool accumulate) {
    return accumulate ? updated(name, x) : output(name, x);
  }
  template <class T>
  auto accumulated(std::string_view name, T* x, index count, bool accumulate) {
    return accumulate ? updated(name, x, count) : output(name, x, count);
  }

  template <class T, class Prepared>
  auto weight(std::string_view name, weight_matrix<T, Prepared> w, row_groups groups = {nullptr, 1, 0}) {
    const auto own = put(name, access::input, detail::spread_out(w.raw, groups));
    using other = reference::prepared<detail::bounded_t<T>>;
    const index stride = groups.stride == 0 ? w.raw.cols : w.raw.stride;
    return weight_matrix<detail::bounded_t<T>, other>{{own.data, w.raw.rows, w.raw.cols, stride}, nullptr};
  }
  template <class T>
  auto weight_gradient(std::string_view name, matrix_view<T> dw, row_groups groups) {
    const auto own = put(name, access::updated, detail::spread_out(matrix_view<const T>(dw), groups));
    return matrix_view<detail::bounded_t<T>>(own.data, dw.rows, dw.cols, dw.stride);
  }
  row_groups groups(row_groups g) { return g; }
  template <class T>
  std::span<const cache_lane<detail::bounded_t<T>>> lanes(std::string_view name, std::span<const cache_lane<T>> all,
                                                          index width, bool written) {
    auto copies = std::make_shared<std::vector<cache_lane<detail::bounded_t<T>>>>();
    for (const cache_lane<T>& lane : all)
      copies->push_back(
          {put(name, written ? access::updated : access::input, matrix_view<const T>(lane.base, 1, width * lane.capacity)).data,
           lane.capacity, lane.steps_run});
    kept_.push_back(copies);
    return *copies;
  }
  template <class X>
  std::span<const X> host(std::string_view, std::span<const X> x) {
    return x;
  }
  template <class T>
  const detail::bounded_t<T>* host(std::string_view name, const T* x, index count) {
    return input(name, x, count);
  }
  template <class T>
  detail::bounded_t<T> scalar(T x) {
    return x;
  }
  template <class T>
  detail::bounded_t<T>* workspace(T*, index) {
    return nullptr;
  }

  /// What the outputs hold now, in the order of the call.
  std::vector<expectation> outputs() const {
    std::vector<expectation> all;
    for (const copy& c : copies_)
      if (c.how != access::input) all.push_back(c.read());
    return all;
  }

 private:
  struct copy {
    access how;
    const void* from;
    void* to;
    index rows, cols;
    std::function<expectation()> read;
  };

  template <class T>
  detail::bounded_t<T>* vector(std::string_view name, access how, T* x, index count) {
    return x == nullptr ? nullptr : put(name, how, matrix_view<const T>(x, 1, count)).data;
  }
  template <class T>
  matrix_view<detail::bounded_t<T>> put(std::string_view name, access how, matrix_view<const T> x) {
    using U = detail::bounded_t<T>;
    if (x.size() > 0)
      for (copy& c : copies_)
        if (c.from == x.data && c.rows == x.rows && c.cols == x.cols) {
          if (how != access::input) c.how = access::updated;
          return {static_cast<U*>(c.to), x.rows, x.cols};
        }
    auto memory = std::make_shared<std::vector<U>>(static_cast<std::size_t>(x.size()));
    const matrix_view<U> view(memory->data(), x.rows, x.cols);
    for (index i = 0; how != access::output && i < x.rows; ++i)
      for (index j = 0; j < x.cols; ++j) view[i][j] = x[i][j];
    copies_.push_back({how, x.data, view.data, x.rows, x.cols, [memory, view, called = std::string(name)] {
                         return detail::expected<U>(called, matrix_view<const U>(view));
                       }});
    return view;
  }

  std::vector<copy> copies_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace parity
GYRE_END
