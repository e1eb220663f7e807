// Operations of the `cuda` backend on a GPU, each beside the `cpu` backend on all cores, at the sizes of the training step that
// docs/performance.md reports. Needs a GPU: without one every entry says why it was not run.
//
// bytes_per_second: operands read and written once each. FLOP/s: 2 x multiply-adds.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/cuda.hpp>

#include "cuda.hpp"

namespace {

using namespace gyre_benchmark;

constexpr size width = 256, inner = 896, heads = 4, head_width = 64, vocabulary = 4096, length = 256;

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
gyre::batch_layout layout_of(size rows) {
  gyre::batch_layout layout;
  if (rows < length)
    layout.add(rows, length - rows, 0);
  else
    layout.assign_uniform(rows / length, length);
  return layout;
}
std::vector<gyre::token> ids_of(size rows) {
  std::vector<gyre::token> ids;
  for (size i = 0; i < rows; ++i) ids.push_back(static_cast<gyre::token>(i * 977 % vocabulary));
  return ids;
}

template <class B>
void embed(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    matrix<float, B> table(b, vocabulary, width), y(b, n, width);
    const auto ids = ids_of(n);
    repeat(state, b, [&] { b.embed(table.read(), std::span(ids), 16.0, y.view()); });
    report(state, bytes(2 * n * width));
  });
}
template <class B>
void embed_backward(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    matrix<float, B> table(b, vocabulary, width), dy(b, n, width);
    const auto ids = ids_of(n);
    repeat(state, b, [&] { b.embed_backward(dy.read(), std::span(ids), 1e-3, table.view()); });
    report(state, bytes(3 * n * width));
  });
}
template <class B>
void rms_norm(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    matrix<float, B> x(b, n, width), y(b, n, width), gain(b, 1, width), rstd(b, n, 1);
    repeat(state, b, [&] { b.rms_norm(x.read(), gain.read().data, 1e-6, y.view(), rstd.view().data); });
    report(state, bytes(2 * n * width));
  });
}
template <class B>
void rms_norm_backward(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    matrix<float, B> x(b, n, width), dy(b, n, width), dx(b, n, width), gain(b, 1, width), dgain(b, 1, width), rstd(b, n, 1),
        work(b, 1, B::rms_norm_backward_workspace(n, width));
    repeat(state, b, [&] {
      b.rms_norm_backward(x.read(), gain.read().data, rstd.read().data, dy.read(), dx.view(), dgain.view().data,
                          work.view().data);
    });
    report(state, bytes(4 * n * width));
  });
}
template <class B>
void gated_silu(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    matrix<float, B> h(b, n, 2 * inner), a(b, n, inner);
    repeat(state, b, [&] { b.gated_silu(h.read(), a.view()); });
    report(state, bytes(3 * n * inner));
  });
}
template <class B>
void gated_silu_backward(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    matrix<float, B> h(b, n, 2 * inner), da(b, n, inner), dh(b, n, 2 * inner);
    repeat(state, b, [&] { b.gated_silu_backward(h.read(), da.read(), dh.view()); });
    report(state, bytes(5 * n * inner));
  });
}

template <class B>
struct attention_operands {
  matrix<float, B> fused, d_fused, o, d_o, lse, work;
  gyre::batch_layout layout;
  gyre::attention_shape shape{heads, heads, head_width, 0.125};
  attention_operands(B& b, size n)
      : fused(b, n, 3 * width),
        d_fused(b, n, 3 * width),
        o(b, n, width),
        d_o(b, n, width),
        lse(b, n, heads),
        work(b, 1, (std::max)(B::attention_backward_workspace(n, shape), size{1})),
        layout(layout_of(n)) {}
  matrix_view<const float> part(size i) const { return fused.read().columns(i * width, width); }
  matrix_view<float> gradient(size i) const { return d_fused.view().columns(i * width, width); }
  double pairs() const {
    double sum = 0;
    for (const gyre::sequence_span& s : layout.sequences())
      sum += static_cast<double>(s.count * (s.count + 1) / 2 + s.count * s.past);
    return sum;
  }
};
template <class B>
void attention(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    const attention_operands<B> x(b, n);
    repeat(state, b, [&] { b.attention(x.part(0), x.part(1), x.part(2), x.layout, x.shape, x.o.view(), x.lse.view().data); });
    report(state, bytes(4 * n * width), 2 * x.pairs() * width);
  });
}
template <class B>
void attention_backward(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    const attention_operands<B> x(b, n);
    b.attention(x.part(0), x.part(1), x.part(2), x.layout, x.shape, x.o.view(), x.lse.view().data);
    repeat(state, b, [&] {
      b.attention_backward(x.part(0), x.part(1), x.part(2), x.o.read(), x.lse.read().data, x.d_o.read(), x.layout, x.shape,
                           x.gradient(0), x.gradient(1), x.gradient(2), x.work.view().data);
    });
    report(state, bytes(8 * n * width), 5 * x.pairs() * width);
  });
}
template <class B>
void cross_entropy(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    matrix<float, B> z(b, n, vocabulary), losses(b, n, 1);
    const auto ids = ids_of(n);
    repeat(state, b, [&] { b.cross_entropy(z.view(), std::span(ids), 1.0f, losses.view().data, true); });
    report(state, bytes(2 * n * vocabulary));
  });
}
template <class B>
void sample(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    matrix<float, B> z(b, n, vocabulary);
    matrix<double, B> log_probabilities(b, n, 1);
    b.random_normal(z.view(), layout_of(n), {gyre::seed{1}, 1}, 3.0, false);
    matrix<gyre::token, B> chosen(b, n, 1);
    const std::vector<gyre::sampling_row> rows(static_cast<std::size_t>(n),
                                               {.rules = {.temperature = 0.7f, .top_p = 0.95f, .top_k = 50}, .uniform = 0.5});
    repeat(state, b, [&] {
      b.sample(z.read(), std::span<const gyre::sampling_row>(rows), std::span<const gyre::token>(), chosen.view().data,
               log_probabilities.view().data);
    });
    report(state, bytes(n * vocabulary));
  });
}
template <class B>
void random_normal(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    matrix<float, B> y(b, n, width);
    const auto layout = layout_of(n);
    repeat(state, b, [&] { b.random_normal(y.view(), layout, {gyre::seed{1}, 1}, 1.0, true); });
    report(state, bytes(n * width));
  });
}
template <class B>
void product(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    matrix<float, B> w(b, 2 * inner, width), x(b, n, width), y(b, n, 2 * inner);
    using prepared = typename B::template prepared<float>;
    const gyre::tensor_entry entry{0, {2 * inner, width}, gyre::role::input_projection, {}};
    prepared packed(b, w.read().data, std::span(&entry, 1), true);
    packed.refresh(b);
    const gyre::weight_matrix<float, prepared> weight{w.read(), &packed};
    repeat(state, b, [&] { b.product(x.read(), weight, y.view(), false); });
    report(state, bytes(n * width + n * 2 * inner + 2 * inner * width), static_cast<double>(n * 2 * inner * width));
  });
}
template <class B>
void adamw_update(benchmark::State& state) {
  with_device<B>(state, [&](B& b, size n) {
    matrix<float, B> w(b, n, width), m(b, n, width), v(b, n, width), g(b, n, width);
    const gyre::adamw_numbers numbers{1, 0.9, 0.95, 1e-8, 1e-3, 0.01, 0.6};
    repeat(state, b, [&] { b.adamw_update(w.view().data, g.read().data, m.view().data, v.view().data, n * width, numbers); });
    report(state, bytes(7 * n * width));
  });
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
void sizes(benchmark::internal::Benchmark* b) { b->Arg(decoding)->Arg(training)->Arg(large)->UseRealTime(); }
void fewer_sizes(benchmark::internal::Benchmark* b) { b->Arg(decoding)->Arg(training)->UseRealTime(); }  // the cpu takes long

BENCHMARK_TEMPLATE(multiply, float)->Apply(sizes);
BENCHMARK_TEMPLATE(multiply, __nv_bfloat16)->Apply(sizes);
// Each operation on the cpu, then on the GPU.
#define GYRE_BENCHMARK_BOTH(operation, sizes)             \
  BENCHMARK_TEMPLATE(operation, gyre::cpu)->Apply(sizes); \
  BENCHMARK_TEMPLATE(operation, gyre::cuda)->Apply(sizes)
GYRE_BENCHMARK_BOTH(copy, sizes);
GYRE_BENCHMARK_BOTH(add, sizes);
GYRE_BENCHMARK_BOTH(embed, sizes);
GYRE_BENCHMARK_BOTH(embed_backward, sizes);
GYRE_BENCHMARK_BOTH(rms_norm, sizes);
GYRE_BENCHMARK_BOTH(rms_norm_backward, sizes);
GYRE_BENCHMARK_BOTH(gated_silu, sizes);
GYRE_BENCHMARK_BOTH(gated_silu_backward, sizes);
GYRE_BENCHMARK_BOTH(attention, fewer_sizes);
GYRE_BENCHMARK_BOTH(attention_backward, fewer_sizes);
GYRE_BENCHMARK_BOTH(cross_entropy, fewer_sizes);
GYRE_BENCHMARK_BOTH(sample, fewer_sizes);
GYRE_BENCHMARK_BOTH(random_normal, sizes);
GYRE_BENCHMARK_BOTH(product, fewer_sizes);
GYRE_BENCHMARK_BOTH(adamw_update, sizes);

}  // namespace
