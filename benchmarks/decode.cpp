// Decoding and prompts of the model that docs/performance.md reports: hidden 256, 4 heads, mlp 896, layers (1, 2, 1),
// vocabulary 4096, float. Arguments: recurrence steps, tokens of the prompt, sequences at a time, threads.
//
//   decode  greedy tokens after the prompt, whose own pass is not timed; items are tokens
//   prompt  the prompt's pass up to the first token; items are its tokens
//
// bytes_per_second of decode: weights that a round streams once each time they are used (packed copies), without keys and
// values. of_reading: that over the rate at which the same threads read as many bytes as a step's weights have, median of
// measurements between the rounds: 1 is the floor.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/generate/generator.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>

#include "peak.hpp"

namespace {

constexpr gyre::dims sizes{.vocab = 4096, .width = 256, .heads = 4, .mlp = 896, .context = 1024};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::prelude<gyre::stack<1, Block>>, gyre::recurrent<gyre::stack<2, Block>>,
                           gyre::coda<gyre::stack<1, Block>>> {};
using network = gyre::network<Model, gyre::cpu, gyre::fp32>;

constexpr gyre::index new_tokens = 64;

struct setup {
  network net;
  gyre::generator<Model, gyre::cpu, gyre::fp32> generator{net, {.prompt_rows = 1 << 20}};
  std::vector<gyre::token> prompt;
  gyre::index sequences;
  gyre::generation_request request;

  explicit setup(const benchmark::State& state)
      : net(gyre::cpu{static_cast<int>(state.range(3))}, gyre::seed{1}, false), sequences(state.range(2)) {
    for (gyre::index i = 0; i < state.range(1); ++i) prompt.push_back(static_cast<gyre::token>(i * 977 % sizes.vocab));
    request.prompt = prompt, request.exit = static_cast<int>(state.range(0)), request.max_new = new_tokens + 1;
    request.choose.greedy = true;
  }
  void start() {
    for (gyre::index i = 0; i < sequences; ++i) {
      request.key = static_cast<std::uint64_t>(i);
      ids.push_back(generator.start(request));
    }
    generator.advance();
  }
  void finish() {
    for (const auto id : ids) generator.cancel(id), generator.take(id);
    ids.clear();
  }
  std::vector<std::uint64_t> ids;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void decode(benchmark::State& state) {
  setup s(state);
  gyre::thread_pool readers(static_cast<int>(state.range(3)));
  std::vector<double> reading;
  double time = 0;
  for (auto _ : state) {
    s.start();
    const auto start = std::chrono::steady_clock::now();
    s.generator.run();
    const double took = seconds_since(start);
    state.SetIterationTime(took);
    time += took;
    s.finish();
    reading.push_back(gyre_benchmark::read_rate(readers, std::size_t{Model::loop::parameter_count} * sizeof(float)));
  }
  const gyre::index rounds = static_cast<gyre::index>(state.iterations()) * new_tokens;
  // A step reads the core and the adapter's half for the state; the rest, with the adapter's other half, is read once.
  const gyre::index step = Model::loop::parameter_count - gyre::index{sizes.width} * sizes.width,
                    once = Model::parameter_count - step;
  state.SetItemsProcessed(rounds * s.sequences);
  const gyre::index bytes = rounds * (once + step * state.range(0)) * static_cast<gyre::index>(sizeof(float));
  state.SetBytesProcessed(bytes);
  std::nth_element(reading.begin(), reading.begin() + reading.size() / 2, reading.end());
  state.counters["of_reading"] = static_cast<double>(bytes) / time / reading[reading.size() / 2];
}

void prompt(benchmark::State& state) {
  setup s(state);
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    s.start();
    state.SetIterationTime(seconds_since(start));
    s.finish();
  }
  state.SetItemsProcessed(static_cast<gyre::index>(state.iterations()) * state.range(1) * s.sequences);
}

}  // namespace

BENCHMARK(decode)
    ->ArgNames({"steps", "prompt", "sequences", "threads"})
    ->Args({8, 512, 1, 2})
    ->Args({8, 512, 1, 1})
    ->Args({8, 16, 1, 2})
    ->Args({4, 512, 1, 2})
    ->Args({16, 512, 1, 2})
    ->Args({8, 512, 8, 2})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(prompt)
    ->ArgNames({"steps", "prompt", "sequences", "threads"})
    ->Args({8, 512, 1, 2})
    ->Args({8, 16, 1, 2})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
