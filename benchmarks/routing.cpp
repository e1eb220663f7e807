// Routing on the `cpu` backend in float: which experts rows go to, and the rows' way there and back.
//
// bytes_per_second: operands read and written once each.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <span>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/core/random.hpp>

namespace {

using gyre::cpu;
using gyre::matrix_view;
using size = gyre::index;

std::vector<float> random(size rows, size cols, std::uint64_t number) {
  std::vector<float> values(static_cast<std::size_t>(rows * cols));
  const gyre::random_stream stream(gyre::seed{1}, gyre::purpose::task, number);
  for (size i = 0; i < rows; ++i)
    stream.fill_normal(std::span<float>(values.data() + i * cols, static_cast<std::size_t>(cols)),
                       {0, static_cast<std::uint32_t>(i), 0, 0});
  return values;
}

/// A router's result and the rows that it sends.
struct routes {
  size rows, experts, active, pairs = rows * active;
  std::vector<float> scores = random(rows, experts, 1), bias = random(1, experts, 2);
  std::vector<float> logits = std::vector<float>(static_cast<std::size_t>(pairs)), gates = logits;
  std::vector<std::int32_t> chosen = std::vector<std::int32_t>(logits.size()), place = chosen, source = chosen;
  std::vector<std::int32_t> offsets = std::vector<std::int32_t>(static_cast<std::size_t>(experts + 1));

  matrix_view<const float> view() const { return {scores.data(), rows, experts}; }
  void route(cpu& b) { b.route(view(), bias.data(), 0.125, active, chosen.data(), logits.data(), gates.data()); }
  void group(cpu& b) { b.group_pairs(chosen.data(), pairs, experts, offsets.data(), place.data(), source.data()); }
};

/// Arguments: rows, experts, active, threads.
template <class F>
void run(benchmark::State& state, double bytes, F f) {
  for (auto _ : state) f();
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes * static_cast<double>(state.iterations())));
}
routes routed(cpu& b, const benchmark::State& state) {
  routes r{state.range(0), state.range(1), state.range(2)};
  r.route(b);
  r.group(b);
  return r;
}
double bytes(size scalars) { return 4 * static_cast<double>(scalars); }

void route(benchmark::State& state) {
  cpu b(static_cast<int>(state.range(3)));
  routes r = routed(b, state);
  run(state, bytes(r.rows * r.experts + 3 * r.pairs), [&] { r.route(b); });
}
void route_backward(benchmark::State& state) {
  cpu b(static_cast<int>(state.range(3)));
  routes r = routed(b, state);
  std::vector<float> d(r.scores.size());
  const std::vector<float> d_gates = r.gates;
  run(state, bytes(r.rows * r.experts + 4 * r.pairs), [&] {
    b.route_backward<float>(r.logits.data(), r.gates.data(), r.chosen.data(), d_gates.data(), 0.125, r.active,
                            {d.data(), r.rows, r.experts});
  });
}
void router_loss(benchmark::State& state) {
  cpu b(static_cast<int>(state.range(3)));
  routes r = routed(b, state);
  const auto layout = gyre::batch_layout::uniform(r.rows / 256, 256);
  std::vector<float> losses(static_cast<std::size_t>(r.rows / 256));
  run(state, bytes(r.rows * r.experts), [&] {
    b.router_loss(r.view(), 0.125, r.chosen.data(), r.active, layout, {1e-2, 1e-3}, losses.data());
  });
}
void router_loss_backward(benchmark::State& state) {
  cpu b(static_cast<int>(state.range(3)));
  routes r = routed(b, state);
  const auto layout = gyre::batch_layout::uniform(r.rows / 256, 256);
  std::vector<float> d(r.scores.size());
  run(state, bytes(3 * r.rows * r.experts), [&] {
    b.router_loss_backward(r.view(), 0.125, r.chosen.data(), r.active, layout, {1e-2, 1e-3}, 1e-3f,
                           {d.data(), r.rows, r.experts});
  });
}
void group_pairs(benchmark::State& state) {
  cpu b(static_cast<int>(state.range(3)));
  routes r = routed(b, state);
  run(state, bytes(3 * r.pairs), [&] { r.group(b); });
}

constexpr size width = 256;
void spread(benchmark::State& state) {
  cpu b(static_cast<int>(state.range(3)));
  routes r = routed(b, state);
  const auto x = random(r.rows, width, 3);
  auto y = random(r.pairs, width, 4);
  run(state, bytes(2 * r.pairs * width), [&] {
    b.spread<float>({x.data(), r.rows, width}, r.source.data(), r.active, {y.data(), r.pairs, width});
  });
}
void collect(benchmark::State& state) {
  cpu b(static_cast<int>(state.range(3)));
  routes r = routed(b, state);
  auto x = random(r.rows, width, 3);
  const auto y = random(r.pairs, width, 4);
  run(state, bytes((r.pairs + 2 * r.rows) * width), [&] {
    b.collect<float>({y.data(), r.pairs, width}, r.place.data(), r.gates.data(), r.active, {x.data(), r.rows, width});
  });
}
void collect_backward(benchmark::State& state) {
  cpu b(static_cast<int>(state.range(3)));
  routes r = routed(b, state);
  const auto dx = random(r.rows, width, 3), y = random(r.pairs, width, 4);
  auto dy = y, d_gates = r.gates;
  run(state, bytes((2 * r.pairs + r.rows) * width), [&] {
    b.collect_backward<float>({dx.data(), r.rows, width}, {y.data(), r.pairs, width}, r.place.data(), r.gates.data(), r.active,
                              {dy.data(), r.pairs, width}, d_gates.data());
  });
}

void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"rows", "experts", "active", "threads"})->Unit(benchmark::kMicrosecond)->UseRealTime();
  for (const int threads : {1, 2}) {
    b->Args({2048, 64, 4, threads});
    b->Args({16384, 256, 4, threads});
  }
}
void more_sizes(benchmark::internal::Benchmark* b) {
  sizes(b);
  for (const int threads : {1, 2}) {
    b->Args({16384, 4096, 4, threads});
    b->Args({2048, 4096, 64, threads});
    b->Args({2048, 64, 64, threads});
  }
  b->Args({1, 64, 4, 1});
}

BENCHMARK(route)->Apply(more_sizes);
BENCHMARK(route_backward)->Apply(sizes);
BENCHMARK(router_loss)->Apply(sizes);
BENCHMARK(router_loss_backward)->Apply(sizes);
BENCHMARK(group_pairs)->Apply(sizes);
BENCHMARK(spread)->Apply(sizes);
BENCHMARK(collect)->Apply(sizes);
BENCHMARK(collect_backward)->Apply(sizes);

}  // namespace
