// Every operation of the `cpu` backend in float, at the sizes of the training step that docs/performance.md reports: 8 sequences
// of 256 tokens, width 256, 4 heads of 64, gated MLP 896, vocabulary 4096; and at the sizes of decoding: one token after 255.
//
// bytes_per_second: operands read and written once each. FLOP/s: 2 x multiply-adds, of attention the causal half.
#include <benchmark/benchmark.h>

#include <span>
#include <string>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/core/random.hpp>

namespace {

using scalar = float;
using gyre::cpu;
using gyre::matrix_view;
using gyre::token;
using size = gyre::index;

constexpr size width = 256, heads = 4, head_width = 64, inner = 896, vocabulary = 4096, length = 256;

struct matrix {
  size rows, cols;
  std::vector<scalar> values;
  matrix(size rows_, size cols_) : rows(rows_), cols(cols_), values(static_cast<std::size_t>(rows_ * cols_)) {
    const gyre::random_stream stream(gyre::seed{1}, gyre::purpose::task, static_cast<std::uint64_t>(cols_));
    stream.fill_normal(std::span<scalar>(values), {});
  }
  matrix_view<scalar> view() { return {values.data(), rows, cols}; }
  matrix_view<const scalar> read() const { return {values.data(), rows, cols}; }
};

void report(benchmark::State& state, double elements_moved, double multiply_adds = 0) {
  const double calls = static_cast<double>(state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(calls * elements_moved * sizeof(scalar)));
  if (multiply_adds > 0) state.counters["FLOP/s"] = benchmark::Counter(2 * multiply_adds * calls, benchmark::Counter::kIsRate);
}

/// Arguments: rows, threads.
template <class F>
void run(benchmark::State& state, F f) {
  cpu device(static_cast<int>(state.range(1)));
  f(device, static_cast<size>(state.range(0)));
}

gyre::batch_layout layout_of(size rows) {
  gyre::batch_layout layout;
  if (rows == 1)
    layout.add(1, length - 1, 0);
  else
    layout.assign_uniform(rows / length, length);
  return layout;
}

std::vector<token> ids_of(size rows) {
  std::vector<token> ids;
  for (size i = 0; i < rows; ++i) ids.push_back(static_cast<token>(i * 977 % vocabulary));
  return ids;
}

void copy(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    matrix x(n, width), y(n, width);
    for (auto _ : state) b.copy(x.read(), y.view());
    report(state, 2.0 * static_cast<double>(n * width));
  });
}
void add(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    matrix x(n, width), y(n, width);
    b.fill(y.view(), scalar(0));
    for (auto _ : state) b.add(x.read(), y.view());
    report(state, 3.0 * static_cast<double>(n * width));
  });
}
void embed(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    matrix table(vocabulary, width), y(n, width);
    const auto ids = ids_of(n);
    for (auto _ : state) b.embed(table.read(), ids, 16.0, y.view());
    report(state, 2.0 * static_cast<double>(n * width));
  });
}
void embed_backward(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    matrix table(vocabulary, width), dy(n, width);
    const auto ids = ids_of(n);
    for (auto _ : state) b.embed_backward(dy.read(), ids, 1e-3, table.view());
    report(state, 3.0 * static_cast<double>(n * width));
  });
}
void rms_norm(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    matrix x(n, width), y(n, width), gain(1, width), rstd(n, 1);
    for (auto _ : state) b.rms_norm(x.read(), gain.values.data(), 1e-6, y.view(), rstd.values.data());
    report(state, 2.0 * static_cast<double>(n * width));
  });
}
void add_rms_norm(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    matrix x(n, width), f(n, width), sum(n, width), y(n, width), gain(1, width), rstd(n, 1);
    for (auto _ : state) b.add_rms_norm(x.read(), f.read(), gain.values.data(), 1e-6, sum.view(), y.view(), rstd.values.data());
    report(state, 4.0 * static_cast<double>(n * width));
  });
}
void rms_norm_backward(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    matrix x(n, width), dy(n, width), dx(n, width), gain(1, width), dgain(1, width), rstd(n, 1);
    matrix workspace(1, cpu::rms_norm_backward_workspace(n, width));
    for (auto _ : state) {
      b.rms_norm_backward(x.read(), gain.values.data(), static_cast<const scalar*>(rstd.values.data()), dy.read(), dx.view(),
                          dgain.values.data(), workspace.values.data());
      if (state.iterations() % 64 == 0) b.fill(dx.view(), scalar(0));
    }
    report(state, 4.0 * static_cast<double>(n * width));
  });
}
void gated_silu(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    matrix h(n, 2 * inner), a(n, inner);
    for (auto _ : state) b.gated_silu(h.read(), a.view());
    report(state, 3.0 * static_cast<double>(n * inner));
  });
}
void gated_silu_backward(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    matrix h(n, 2 * inner), da(n, inner), dh(n, 2 * inner);
    for (auto _ : state) b.gated_silu_backward(h.read(), da.read(), dh.view());
    report(state, 5.0 * static_cast<double>(n * inner));
  });
}
void rotary(benchmark::State& state, gyre::pairing pairs) {
  run(state, [&](cpu& b, size n) {
    matrix x(n, 3 * width), bias(1, 2 * width), table(length, head_width);
    b.fill(bias.view(), scalar(0));
    for (size i = 0; i < length * head_width; ++i) table.values[static_cast<std::size_t>(i)] = i % 2 == 0 ? 0.8f : 0.6f;
    const auto layout = layout_of(n);
    for (auto _ : state)
      b.rotary(x.view().columns(0, 2 * width), bias.values.data(), layout.positions(), table.values.data(),
               {2 * heads, head_width, pairs});
    report(state, 4.0 * static_cast<double>(n * width));
  });
}
void column_sum(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    matrix x(n, 2 * width), sum(1, 2 * width), workspace(1, cpu::column_sum_workspace(n, 2 * width));
    for (auto _ : state) b.column_sum(x.read(), sum.values.data(), workspace.values.data());
    report(state, static_cast<double>(n * 2 * width));
  });
}

struct attention_operands {
  matrix fused, d_fused, o, d_o, lse;
  gyre::batch_layout layout;
  gyre::attention_shape shape{heads, heads, head_width, 0.125};
  explicit attention_operands(size n)
      : fused(n, 3 * width), d_fused(n, 3 * width), o(n, width), d_o(n, width), lse(n, heads), layout(layout_of(n)) {}
  matrix_view<const scalar> part(size i) const { return fused.read().columns(i * width, width); }
  matrix_view<scalar> gradient(size i) { return d_fused.view().columns(i * width, width); }
  double pairs() const {
    double sum = 0;
    for (const gyre::sequence_span& s : layout.sequences())
      sum += static_cast<double>(s.count * (s.count + 1) / 2 + s.count * s.past);
    return sum;
  }
};
void attention(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    attention_operands x(n);
    for (auto _ : state) b.attention(x.part(0), x.part(1), x.part(2), x.layout, x.shape, x.o.view(), x.lse.values.data());
    report(state, 4.0 * static_cast<double>(n * width), 2 * x.pairs() * width);
  });
}
void attention_backward(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    attention_operands x(n);
    b.attention(x.part(0), x.part(1), x.part(2), x.layout, x.shape, x.o.view(), x.lse.values.data());
    for (auto _ : state)
      b.attention_backward(x.part(0), x.part(1), x.part(2), x.o.read(), static_cast<const scalar*>(x.lse.values.data()),
                           x.d_o.read(), x.layout, x.shape, x.gradient(0), x.gradient(1), x.gradient(2),
                           static_cast<scalar*>(nullptr));
    report(state, 8.0 * static_cast<double>(n * width), 5 * x.pairs() * width);
  });
}
void cached_attention(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    attention_operands x(n);
    std::vector<matrix> memory;
    std::vector<gyre::cache_lane<scalar>> lanes;
    for (std::size_t i = 0; i < x.layout.sequences().size(); ++i) memory.emplace_back(2 * width, length);
    for (matrix& m : memory) lanes.push_back({m.values.data(), length});
    const std::span<const gyre::cache_lane<scalar>> all(lanes);
    b.cache_append(x.part(1), x.part(2), x.layout, all, 0);
    for (auto _ : state) b.cached_attention(x.part(0), x.layout, all, 0, x.shape, 0, x.o.view());
    report(state, static_cast<double>(2 * n * width) + 2.0 * width * length * static_cast<double>(lanes.size()),
           2 * x.pairs() * width);
  });
}

/// A token's last step of 8, 4 query heads and 1 of keys and values.
struct depth_operands {
  static constexpr size slots = 8;
  matrix q, k, v, o, d_o, lse, dq, dk, dv;
  gyre::attention_shape shape{heads, 1, head_width, 0.125};
  explicit depth_operands(size n)
      : q(n, width),
        k(slots * n, head_width),
        v(slots * n, head_width),
        o(n, width),
        d_o(n, width),
        lse(n, heads),
        dq(n, width),
        dk(slots * n, head_width),
        dv(slots * n, head_width) {}
};
void depth_attention(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    depth_operands x(n);
    for (auto _ : state) b.depth_attention(x.q.read(), x.k.read(), x.v.read(), x.shape, x.o.view(), x.lse.values.data());
    report(state, static_cast<double>(2 * n * (width + x.slots * head_width)), 2.0 * static_cast<double>(n * x.slots * width));
  });
}
void depth_attention_backward(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    depth_operands x(n);
    b.depth_attention(x.q.read(), x.k.read(), x.v.read(), x.shape, x.o.view(), x.lse.values.data());
    for (auto _ : state) {
      b.depth_attention_backward(x.q.read(), x.k.read(), x.v.read(), x.o.read(),
                                 static_cast<const scalar*>(x.lse.values.data()), x.d_o.read(), x.shape, x.dq.view(),
                                 x.dk.view(), x.dv.view());
      if (state.iterations() % 64 == 0) b.fill(x.dk.view(), scalar(0)), b.fill(x.dv.view(), scalar(0));
    }
    report(state, static_cast<double>(n * (4 * width + 6 * x.slots * head_width)),
           5.0 * static_cast<double>(n * x.slots * width));
  });
}

void cross_entropy(benchmark::State& state, bool gradient) {
  run(state, [&](cpu& b, size n) {
    matrix z(n, vocabulary), losses(n, 1);
    const auto ids = ids_of(n);
    for (auto _ : state) b.cross_entropy(z.view(), ids, scalar(1), losses.values.data(), gradient);
    report(state, (gradient ? 2.0 : 1.0) * static_cast<double>(n * vocabulary));
  });
}
void random_normal(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    matrix y(n, width);
    const auto layout = layout_of(n);
    for (auto _ : state) b.random_normal(y.view(), layout, {gyre::seed{1}, 1}, 1.0, true);
    report(state, static_cast<double>(n * width));
  });
}
void standardise(benchmark::State& state) {
  run(state, [&](cpu& b, size n) {
    matrix y(n, width);
    for (auto _ : state) b.standardise(y.view());
    report(state, 2.0 * static_cast<double>(n * width));
  });
}

void product(benchmark::State& state, size out, size in, char kind) {
  run(state, [&](cpu& b, size n) {
    matrix w(out, in), dw(out, in), x(n, in), y(n, out);
    const gyre::tensor_entry entry{0, {out, in}, gyre::role::input_projection, {}};
    cpu::prepared<scalar> packed(b, w.values.data(), std::span(&entry, 1), true);
    packed.refresh(b);
    const gyre::weight_matrix<scalar, cpu::prepared<scalar>> weight{w.read(), &packed};
    for (auto _ : state)
      if (kind == 'y')
        b.product(x.read(), weight, y.view(), false);
      else if (kind == 'x')
        b.product_input_gradient(y.read(), weight, x.view(), false);
      else
        b.product_weight_gradient(y.read(), x.read(), dw.view());
    report(state, static_cast<double>(n * out + n * in + out * in), static_cast<double>(n * out * in));
  });
}
void refresh(benchmark::State& state) {
  cpu b(static_cast<int>(state.range(1)));
  matrix w(2 * inner, width);
  const gyre::tensor_entry entry{0, {2 * inner, width}, gyre::role::input_projection, {}};
  cpu::prepared<scalar> packed(b, w.values.data(), std::span(&entry, 1), true);
  for (auto _ : state) packed.refresh(b);
  report(state, 4.0 * 2 * inner * width);
}

void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"rows", "threads"})->Unit(benchmark::kMicrosecond)->UseRealTime();
  for (const int rows : {2048, 1})
    for (const int threads : {1, 2}) b->Args({rows, threads});
}

BENCHMARK(copy)->Apply(sizes);
BENCHMARK(add)->Apply(sizes);
BENCHMARK(embed)->Apply(sizes);
BENCHMARK(embed_backward)->Apply(sizes);
BENCHMARK(rms_norm)->Apply(sizes);
BENCHMARK(add_rms_norm)->Apply(sizes);
BENCHMARK(rms_norm_backward)->Apply(sizes);
BENCHMARK(gated_silu)->Apply(sizes);
BENCHMARK(gated_silu_backward)->Apply(sizes);
BENCHMARK_CAPTURE(rotary, adjacent, gyre::pairing::adjacent)->Apply(sizes);
BENCHMARK_CAPTURE(rotary, half_split, gyre::pairing::half_split)->Apply(sizes);
BENCHMARK(column_sum)->Apply(sizes);
BENCHMARK(attention)->Apply(sizes);
BENCHMARK(attention_backward)->Apply(sizes);
BENCHMARK(cached_attention)->Apply(sizes);
BENCHMARK(depth_attention)->Apply(sizes);
BENCHMARK(depth_attention_backward)->Apply(sizes);
BENCHMARK_CAPTURE(cross_entropy, loss, false)->Apply(sizes);
BENCHMARK_CAPTURE(cross_entropy, gradient, true)->Apply(sizes);
BENCHMARK(random_normal)->Apply(sizes);
BENCHMARK(standardise)->Apply(sizes);
BENCHMARK_CAPTURE(product, qkv, 3 * width, width, 'y')->Apply(sizes);
BENCHMARK_CAPTURE(product, fc, 2 * inner, width, 'y')->Apply(sizes);
BENCHMARK_CAPTURE(product, mlp_out, width, inner, 'y')->Apply(sizes);
BENCHMARK_CAPTURE(product, head, vocabulary, width, 'y')->Apply(sizes);
BENCHMARK_CAPTURE(product, fc_input_gradient, 2 * inner, width, 'x')->Apply(sizes);
BENCHMARK_CAPTURE(product, fc_weight_gradient, 2 * inner, width, 'w')->Apply(sizes);
BENCHMARK(refresh)->Apply(sizes);

}  // namespace
