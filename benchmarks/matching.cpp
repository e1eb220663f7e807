// The closed form of a mixture's cost, and searches with it: one descent to the families of 1 B and 2 B parameters, without and
// with depth attention. items_per_second: candidates.
#include <benchmark/benchmark.h>

#include "../examples/support/mixture_family.hpp"

namespace {

void cost(benchmark::State& state) {
  gyre::model_sizes sizes = examples::mixture_family::of(16).start(true);
  gyre::index count = 0;
  for (auto _ : state) {
    sizes.experts = 500 + count++ % 64;
    benchmark::DoNotOptimize(gyre::cost_of(sizes));
  }
  state.SetItemsProcessed(count);
}

/// Arguments: depth, whether there is depth attention.
void match(benchmark::State& state) {
  const auto family = examples::mixture_family::of(state.range(0));
  gyre::index candidates = 0;
  double objective = 0;
  for (auto _ : state) {
    const auto found = examples::match_member(family, state.range(1) != 0, {});
    candidates += found.candidates, objective = found.objective;
  }
  state.SetItemsProcessed(candidates);
  state.counters["off_percent"] = 100 * objective;
}

BENCHMARK(cost);
BENCHMARK(match)->ArgNames({"depth", "depth_attention"})->ArgsProduct({{16, 32}, {0, 1}})->Unit(benchmark::kMillisecond);

}  // namespace
