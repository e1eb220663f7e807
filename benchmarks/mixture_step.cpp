// A training step of the mixture that docs/performance.md reports: width 256, depth 8, 4 query heads of 64 and one key/value head in
// sequence and depth attention, 64 experts of width 256 of which 4 are active, one shared of width 256, router width 64, plain
// projections, vocabulary 4096, 8 x 256 tokens, float.
#include "train_step.hpp"

#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/mixture_model.hpp>

namespace {

constexpr gyre::dims sizes{
    .vocab = 4096, .width = 256, .heads = 4, .kv_heads = 1, .mlp = 256, .context = 256, .mean_steps = 8, .rope_base = 10000};
struct Layer
    : gyre::mixture<gyre::sequential, gyre::depth_attention<sizes>,
                    gyre::sequence_attention<sizes, gyre::attention_options{.query_key_bias = false, .query_key_norm = true}>,
                    gyre::expert_attention<sizes, gyre::experts{.count = 64, .active = 4}>> {};
struct Model : gyre::mixture_model<sizes, Layer> {};

void mixture_step(benchmark::State& state) { gyre_benchmark::train_step<Model>(state); }
BENCHMARK(mixture_step)
    ->Args({8, 0, 2})
    ->Args({8, 0, 1})
    ->ArgNames({"r", "k", "threads"})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void mixture_shares(benchmark::State& state) { gyre_benchmark::shares<Model>(state); }
BENCHMARK(mixture_shares)
    ->Args({8, 0, 2})
    ->Args({8, 0, 1})
    ->ArgNames({"r", "k", "threads"})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
