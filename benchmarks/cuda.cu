// Operations of the `cuda` backend on a GPU, each beside the `cpu` backend on all cores, at the sizes of the training step that
// docs/performance.md reports. Needs a GPU: without one every entry says why it was not run.
//
// bytes_per_second: operands read and written once each. FLOP/s: 2 x multiply-adds.
#include <benchmark/benchmark.h>

#include <optional>
#include <string>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/cuda.hpp>

namespace {

using gyre::matrix_view;
using size = gyre::index;

constexpr size width = 256, inner = 896;

template <class B>
std::optional<B> device_of(benchmark::State& state) {
  try {
    return B();
  } catch (const gyre::error& why) {
    state.SkipWithError(why.what());
    return std::nullopt;
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
void report(benchmark::State& state, double bytes, double multiply_adds = 0) {
  const double calls = static_cast<double>(state.items_processed());
  state.SetBytesProcessed(static_cast<std::int64_t>(calls * bytes));
  if (multiply_adds > 0) state.counters["FLOP/s"] = benchmark::Counter(2 * multiply_adds * calls, benchmark::Counter::kIsRate);
}

template <class B>
void copy(benchmark::State& state) {
  std::optional<B> device = device_of<B>(state);
  if (!device) return;
  const size rows = state.range(0);
  matrix<float, B> x(*device, rows, width), y(*device, rows, width);
  repeat(state, *device, [&] { device->copy(x.read(), y.view()); });
  report(state, 2.0 * static_cast<double>(rows * width) * sizeof(float));
}
template <class B>
void add(benchmark::State& state) {
  std::optional<B> device = device_of<B>(state);
  if (!device) return;
  const size rows = state.range(0);
  matrix<float, B> x(*device, rows, width), y(*device, rows, width);
  repeat(state, *device, [&] { device->add(x.read(), y.view()); });
  report(state, 3.0 * static_cast<double>(rows * width) * sizeof(float));
}
/// cuBLAS itself: what products of the backend are measured against.
template <class T>
void multiply(benchmark::State& state) {
  std::optional<gyre::cuda> device = device_of<gyre::cuda>(state);
  if (!device) return;
  const size rows = state.range(0);
  matrix<T, gyre::cuda> x(*device, rows, width), w(*device, 2 * inner, width), y(*device, rows, 2 * inner);
  repeat(state, *device, [&] { device->device().multiply<T, T>(x.read(), false, w.read(), true, y.view(), false); });
  const double m = static_cast<double>(rows);
  report(state, (m * width + m * 2 * inner + 2.0 * inner * width) * sizeof(T), m * 2 * inner * width);
}

constexpr size decoding = 1, training = 2048, large = 65536;
BENCHMARK_TEMPLATE(copy, gyre::cpu)->Arg(decoding)->Arg(training)->Arg(large)->UseRealTime();
BENCHMARK_TEMPLATE(copy, gyre::cuda)->Arg(decoding)->Arg(training)->Arg(large)->UseRealTime();
BENCHMARK_TEMPLATE(add, gyre::cpu)->Arg(decoding)->Arg(training)->Arg(large)->UseRealTime();
BENCHMARK_TEMPLATE(add, gyre::cuda)->Arg(decoding)->Arg(training)->Arg(large)->UseRealTime();
BENCHMARK_TEMPLATE(multiply, float)->Arg(decoding)->Arg(training)->Arg(large)->UseRealTime();
BENCHMARK_TEMPLATE(multiply, __nv_bfloat16)->Arg(decoding)->Arg(training)->Arg(large)->UseRealTime();

}  // namespace
