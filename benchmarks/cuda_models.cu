// Training steps and decoding of whole models on a GPU. Needs one: without it every entry says why it was not run. The small
// model is that of train_step.cpp and decode.cpp, which have it on the cpu.
//
//   train_step  items are tokens; FLOP/s counts products and scores; of_products is that over the rate of cuBLAS's product of
//               two square matrices of 4096 in the same type, measured before and after
//   decode      greedy tokens after a prompt, whose own pass is not timed; items are tokens. bytes_per_second: weights, each
//               time a round uses them, without keys and values; of_copying is that over the rate of a copy of 1 GB, likewise
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <vector>

#include <gyre/backend/cuda.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/generate/generator.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/train/adamw.hpp>
#include <gyre/train/trainer.hpp>

#include "cuda.hpp"

namespace {

using namespace gyre_benchmark;

template <gyre::dims Sizes>
struct block : gyre::sandwich_block<gyre::sequence_attention<Sizes>, gyre::gated_mlp<Sizes>> {};

inline constexpr gyre::dims small_sizes{.vocab = 4096, .width = 256, .heads = 4, .mlp = 896, .context = 1024, .mean_steps = 8};
struct small : gyre::model<small_sizes, gyre::prelude<block<small_sizes>>, gyre::recurrent<gyre::stack<2, block<small_sizes>>>,
                           gyre::coda<block<small_sizes>>> {};

/// 0.2 billion parameters.
inline constexpr gyre::dims large_sizes{
    .vocab = 32768, .width = 1024, .heads = 16, .mlp = 4096, .context = 1024, .mean_steps = 8};
struct large
    : gyre::model<large_sizes, gyre::prelude<gyre::stack<2, block<large_sizes>>>,
                  gyre::recurrent<gyre::stack<4, block<large_sizes>>>, gyre::coda<gyre::stack<2, block<large_sizes>>>> {};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Calls a second, over ten of them.
template <class F>
double calls_a_second(gyre::cuda& device, F call) {
  call();
  device.finish();
  const double begin = seconds();
  for (int n = 0; n < 10; ++n) call();
  device.finish();
  return 10 / (seconds() - begin);
}
template <class T>
double product_rate(gyre::cuda& device) {
  constexpr size n = 4096;
  const matrix<T, gyre::cuda> a(device, n, n), b(device, n, n), c(device, n, n);
  return 2.0 * n * n * n *
         calls_a_second(device, [&] { device.device().multiply<T, T>(a.read(), false, b.read(), true, c.view(), false); });
}
double copy_rate(gyre::cuda& device) {
  constexpr size rows = 1 << 16, cols = 4096;
  const matrix<float, gyre::cuda> from(device, rows, cols), to(device, rows, cols);
  return 2.0 * rows * cols * sizeof(float) * calls_a_second(device, [&] { device.copy(from.read(), to.view()); });
}

template <class Model, class P>
void train_step(benchmark::State& state) {
  on_device<gyre::cuda>(state, [&](gyre::cuda& device) {
    constexpr size length = 256;
    const size rows = state.range(2);
    const int steps = static_cast<int>(state.range(0)), backprop = static_cast<int>(state.range(1));
    gyre::network<Model, gyre::cuda, P> net(device, gyre::seed{1});
    gyre::trainer trainer(net, gyre::adamw{.lr = 1e-4}, gyre::fixed_depth{steps, backprop});
    std::vector<gyre::token> ids(static_cast<std::size_t>(rows * length)), targets(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<gyre::token>(i * 2654435761u % Model::shape.vocab);
      targets[i] = static_cast<gyre::token>((i + 1) * 2654435761u % Model::shape.vocab);
    }
    const gyre::batch all{ids, targets, rows, length};
    trainer.step(all);
    double products = product_rate<typename P::activation>(device), time = 0;
    for (auto _ : state) {
      const double begin = seconds();
      benchmark::DoNotOptimize(trainer.step(all).loss);
      device.finish();
      const double took = seconds() - begin;
      state.SetIterationTime(took);
      time += took;
    }
    products = (std::max)(products, product_rate<typename P::activation>(device));
    gyre::batch_layout layout;
    layout.assign_uniform(rows, length);
    const double flops =
        gyre::plan_pass<Model, gyre::cuda, P>(layout, gyre::depth_draw::of(steps, backprop), true).total().product_flops;
    const double rate = static_cast<double>(state.iterations()) * flops / time;
    state.SetItemsProcessed(state.iterations() * rows * length);
    state.counters["FLOP/s"] = rate;
    state.counters["of_products"] = rate / products;
  });
}

template <class Model, class P>
void decode(benchmark::State& state) {
  on_device<gyre::cuda>(state, [&](gyre::cuda& device) {
    constexpr size new_tokens = 64;
    const size sequences = state.range(2);
    const gyre::network<Model, gyre::cuda, P> net(device, gyre::seed{1}, false);
    gyre::generator<Model, gyre::cuda, P> generator(net, {.prompt_rows = 1 << 20});
    std::vector<gyre::token> prompt;
    for (size i = 0; i < state.range(1); ++i) prompt.push_back(static_cast<gyre::token>(i * 977 % Model::shape.vocab));
    gyre::generation_request request;
    request.prompt = prompt, request.exit = static_cast<int>(state.range(0)), request.max_new = new_tokens + 1;
    request.choose.greedy = true;
    double copying = copy_rate(device), time = 0;
    for (auto _ : state) {
      std::vector<std::uint64_t> ids;
      for (size i = 0; i < sequences; ++i) request.key = static_cast<std::uint64_t>(i), ids.push_back(generator.start(request));
      generator.advance();
      const double begin = seconds();
      generator.run();
      const double took = seconds() - begin;
      state.SetIterationTime(took);
      time += took;
      for (const auto id : ids) generator.cancel(id), generator.take(id);
    }
    copying = (std::max)(copying, copy_rate(device));
    const size rounds = static_cast<size>(state.iterations()) * new_tokens;
    // A step reads the core and the adapter's half for the state; the rest, with the adapter's other half, is read once.
    constexpr size width = Model::shape.width, step = Model::loop::parameter_count - width * width,
                   once = Model::parameter_count - step;
    const size bytes = rounds * (once + step * state.range(0)) * static_cast<size>(sizeof(typename P::parameter));
    state.SetItemsProcessed(rounds * sequences);
    state.SetBytesProcessed(bytes);
    state.counters["of_copying"] = static_cast<double>(bytes) / time / copying;
  });
}

void trained(benchmark::internal::Benchmark* b) {
  b->ArgNames({"r", "k", "rows"})->Args({8, 4, 8})->Args({8, 4, 64})->UseManualTime()->Unit(benchmark::kMillisecond);
}
void decoded(benchmark::internal::Benchmark* b) {
  b->ArgNames({"steps", "prompt", "sequences"})
      ->Args({8, 512, 1})
      ->Args({8, 512, 32})
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}
BENCHMARK_TEMPLATE(train_step, small, gyre::fp32)->Apply(trained);
BENCHMARK_TEMPLATE(train_step, small, gyre::bf16_mixed)->Apply(trained);
BENCHMARK_TEMPLATE(train_step, large, gyre::fp32)->Apply(trained);
BENCHMARK_TEMPLATE(train_step, large, gyre::bf16_mixed)->Apply(trained);
BENCHMARK_TEMPLATE(decode, small, gyre::fp32)->Apply(decoded);
BENCHMARK_TEMPLATE(decode, small, gyre::bf16_mixed)->Apply(decoded);
BENCHMARK_TEMPLATE(decode, large, gyre::fp32)->Apply(decoded);
BENCHMARK_TEMPLATE(decode, large, gyre::bf16_mixed)->Apply(decoded);

}  // namespace
