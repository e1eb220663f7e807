// What benchmarks on a GPU share: a backend that may be missing, its memory, and calls that are not waited for one by one.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <optional>

#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

namespace gyre_benchmark {

using gyre::matrix_view;
using size = gyre::index;

template <class B>
std::optional<B> device_of(benchmark::State& state) {
  try {
    return B();
  } catch (const gyre::error& why) {
    state.SkipWithError(why.what());
    return std::nullopt;
  }
}

/// `run(device)` on a backend that may be missing; what does not fit its memory is skipped with its reason.
template <class B, class F>
void on_device(benchmark::State& state, F run) {
  std::optional<B> device = device_of<B>(state);
  if (!device) return;
  try {
    run(*device);
  } catch (const gyre::error& why) {
    state.SkipWithError(why.what());
  }
}

/// Memory of a backend, zero.
template <class T, class B>
class matrix {
 public:
  matrix(B& device, size rows, size cols)
      : device_(device),
        bytes_(sizeof(T) * static_cast<std::size_t>(rows * cols)),
        view_(reinterpret_cast<T*>(device.allocate(bytes_)), rows, cols) {
    device_.fill(view_, T(0));
  }
  ~matrix() { device_.deallocate(reinterpret_cast<std::byte*>(view_.data), bytes_); }
  matrix(const matrix&) = delete;
  matrix& operator=(const matrix&) = delete;
  matrix_view<T> view() const { return view_; }
  matrix_view<const T> read() const { return view_; }

 private:
  B device_;
  std::size_t bytes_;
  matrix_view<T> view_;
};

/// Many calls between two waits: what a pass does.
template <class B, class F>
void repeat(benchmark::State& state, B& device, F call) {
  constexpr int calls = 20;
  call();
  device.finish();
  for (auto _ : state) {
    for (int n = 0; n < calls; ++n) call();
    device.finish();
  }
  state.SetItemsProcessed(state.iterations() * calls);
}
inline void report(benchmark::State& state, double bytes, double multiply_adds = 0) {
  const double calls = static_cast<double>(state.items_processed());
  state.SetBytesProcessed(static_cast<std::int64_t>(calls * bytes));
  if (multiply_adds > 0) state.counters["FLOP/s"] = benchmark::Counter(2 * multiply_adds * calls, benchmark::Counter::kIsRate);
}

/// `run(device, rows)` for the rows of the entry.
template <class B, class F>
void with_device(benchmark::State& state, F run) {
  on_device<B>(state, [&](B& device) { run(device, static_cast<size>(state.range(0))); });
}
inline double bytes(size scalars) { return static_cast<double>(scalars) * sizeof(float); }

}  // namespace gyre_benchmark
