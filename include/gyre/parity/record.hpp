// Recordings of what every call of a pass gave, and their comparison: which operation diverges first.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <gyre/parity/placement.hpp>
#include <gyre/parity/report.hpp>
#include <gyre/parity/wrapped.hpp>

GYRE_BEGIN
namespace parity {

/// One call: its outputs, or in bounded numbers what they should be.
struct recorded_call {
  operation of = operation::count;
  std::string label;  // of results that no operation made
  std::vector<tensor> outputs;
  std::vector<expectation> expected;

  std::string name() const {
    return of < operation::count ? std::string(operation_names[static_cast<std::size_t>(of)]) : label;
  }
};
using recording = std::vector<recorded_call>;

namespace detail {

template <class T>
std::vector<T> numbers_of(const tensor& t) {
  std::vector<T> all(static_cast<std::size_t>(t.size()));
  if (!all.empty()) std::memcpy(all.data(), t.bytes.data(), t.bytes.size());
  return all;
}

/// Adds a matrix in a backend's memory to a call.
template <class B, class T>
void record(B& device, recorded_call& call, std::string_view name, matrix_view<const T> x) {
  if constexpr (is_bounded<T>::value) {
    call.expected.push_back(expected<T>(name, x));
  } else {
    tensor t{std::string(name), dtype_of<T>(), access::output, x.rows, x.cols, {}};
    const std::size_t row = static_cast<std::size_t>(x.cols) * sizeof(T);
    t.bytes.resize(static_cast<std::size_t>(x.rows) * row);
    for (index i = 0; row > 0 && i < x.rows; ++i)
      transfer<B>::from_device(device, t.bytes.data() + static_cast<std::size_t>(i) * row,
                               reinterpret_cast<const std::byte*>(x[i]), row);
    // Beside bounded numbers, whole numbers are what is expected.
    if constexpr (std::is_integral_v<T>) {
      const std::vector<T> copy = numbers_of<T>(t);
      call.expected.push_back(expected<T>(name, {copy.data(), x.rows, x.cols}));
    }
    call.outputs.push_back(std::move(t));
  }
}

/// The visitor that leaves arguments as they are and remembers the outputs.
template <class B>
class watcher {
 public:
  using backend = B;
  std::vector<std::function<void(B&, recorded_call&)>> outputs;

  template <class V>
  V input(std::string_view, V x) {
    return x;
  }
  template <class T>
  const T* input(std::string_view, const T* x, index) {
    return x;
  }
  template <class T>
  matrix_view<T> output(std::string_view name, matrix_view<T> x) {
    outputs.push_back([name, x](B& device, recorded_call& call) { record<B, T>(device, call, name, x); });
    return x;
  }
  template <class T>
  T* output(std::string_view name, T* x, index count) {
    if (x != nullptr) output(name, matrix_view<T>(x, 1, count));
    return x;
  }
  template <class... A>
  auto updated(std::string_view name, A... a) {
    return output(name, a...);
  }
  template <class T>
  matrix_view<T> accumulated(std::string_view name, matrix_view<T> x, bool) {
    return output(name, x);
  }
  template <class T>
  T* accumulated(std::string_view name, T* x, index count, bool) {
    return output(name, x, count);
  }
  template <class W, class... Groups>
  W weight(std::string_view, W w, Groups...) {
    return w;
  }
  template <class T>
  matrix_view<T> weight_gradient(std::string_view name, matrix_view<T> dw, row_groups groups) {
    for (index g = 0; g < groups.count; ++g)
      output(name, matrix_view<T>(dw.data + g * groups.stride, dw.rows, dw.cols, dw.stride));
    return dw;
  }
  row_groups groups(row_groups g) { return g; }
  template <class T>
  std::span<const cache_lane<T>> lanes(std::string_view name, std::span<const cache_lane<T>> all, index width, bool written) {
    if (written)
      for (const cache_lane<T>& lane : all) output(name, lane.base, width * lane.capacity);
    return all;
  }
  template <class X>
  X host(std::string_view, X x) {
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
  T* workspace(T* x, index) {
    return x;
  }
};

}  // namespace detail

/// A backend that writes down what every call gave. Copies write into one recording, from one thread at a time.
template <class B>
class recorder : public wrapped<recorder<B>, B> {
 public:
  explicit recorder(B device) : wrapped<recorder, B>(std::move(device)), calls_(std::make_shared<recording>()) {}

  recording& calls() const { return *calls_; }

  template <operation Op, class... A>
  void operate(const A&... arguments) {
    detail::watcher<B> watch;
    signature<Op>::map(watch, arguments...);
    recorded_call call;
    call.of = Op;
    signature<Op>::call(this->inner(), arguments...);
    transfer<B>::finish(this->inner());
    for (const auto& output : watch.outputs) output(this->inner(), call);
    calls_->push_back(std::move(call));
  }

 private:
  std::shared_ptr<recording> calls_;
};

/// The recordings of one side, made twice.
struct twice {
  recording first, second;
};

namespace detail {

inline void check_repeats(report& r, side whose, const twice& runs) {
  require(runs.first.size() == runs.second.size(), "parity: ", runs.first.size(), " calls, then ", runs.second.size());
  for (std::size_t n = 0; n < runs.first.size(); ++n) {
    const std::string difference = first_difference(runs.first[n].outputs, runs.second[n].outputs);
    if (difference.empty()) continue;
    (whose == side::left ? r.repeatable_left : r.repeatable_right) = false;
    r.findings.push_back(
        {fault::not_repeatable, whose, "call " + std::to_string(n) + ", " + runs.first[n].name() + ": " + difference});
    return;
  }
}

}  // namespace detail

/// Compares recordings call by call, within four deviations: the worst case would grow from call to call to where it says nothing. Stops at the first call of which an element is off by more than it may be: what follows works
/// on other numbers. Bits are compared between the two recordings of a side.
inline report compare_recordings(std::string subject, const twice& left, const twice& right, const recording& expected) {
  report r;
  r.subject = std::move(subject);
  detail::check_repeats(r, side::left, left);
  detail::check_repeats(r, side::right, right);
  const std::size_t calls = expected.size();
  require(left.first.size() == calls && right.first.size() == calls, "parity: ", left.first.size(), ", ", right.first.size(),
          " and ", calls, " calls of one pass");
  for (std::size_t n = 0; n < calls; ++n) {
    const recorded_call &a = left.first[n], &b = right.first[n];
    require(a.name() == expected[n].name() && b.name() == a.name(), "parity: call ", n, " is ", a.name(), ", ", b.name(),
            " and ", expected[n].name());
    std::vector<expectation> likely = expected[n].expected;
    for (expectation& e : likely) e.expect_likely();
    report one;
    detail::compare_values(one, a.outputs, b.outputs, likely);
    r.elements += one.elements;
    const std::string where = "call " + std::to_string(n) + " of " + std::to_string(calls) + ", " + a.name();
    if (one.worst.row >= 0 && (r.worst.row < 0 || one.worst.excess > r.worst.excess)) {
      r.worst = one.worst;
      r.worst.output = where + ": " + one.worst.output;
    }
    if (one.passed()) continue;
    for (finding& f : one.findings) {
      f.text = "first at " + where + ": " + f.text;
      r.findings.push_back(std::move(f));
    }
    return r;
  }
  return r;
}

}  // namespace parity
GYRE_END
