// A training step of the model that docs/performance.md reports: hidden 256, 4 heads, mlp 896, layers (1, 2, 1), r 8 of which 4 with
// gradient, vocabulary 4096, 8 x 256 tokens, float.
#include "train_step.hpp"

#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>

namespace {

constexpr gyre::dims sizes{.vocab = 4096, .width = 256, .heads = 4, .mlp = 896, .context = 256, .mean_steps = 8};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::prelude<Block>, gyre::recurrent<gyre::stack<2, Block>>, gyre::coda<Block>> {};

void train_step(benchmark::State& state) { gyre_benchmark::train_step<Model>(state); }
BENCHMARK(train_step)
    ->Args({8, 4, 2})
    ->Args({8, 4, 1})
    ->ArgNames({"r", "k", "threads"})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void shares(benchmark::State& state) { gyre_benchmark::shares<Model>(state); }
BENCHMARK(shares)->Args({8, 4, 2})->ArgNames({"r", "k", "threads"})->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
