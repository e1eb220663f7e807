// A training step of the model that docs/performance.md reports: hidden 256, 4 heads, mlp 896, layers (1, 2, 1), r 8 of which 4 with
// gradient, vocabulary 4096, 8 x 256 tokens, float, AdamW. Arguments: recurrence steps, steps with gradient, threads.
//
//   train_step  items are tokens; GF counts products and causal scores; of_peak is GF over the rate that the same threads reach in
//               registers, measured before every step and after the last
//   shares      the same step with a clock around every operation; counters are fractions of the step's time
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/ops/operations.hpp>
#include <gyre/train/adamw.hpp>
#include <gyre/train/trainer.hpp>

#include "peak.hpp"

namespace {

constexpr gyre::dims sizes{.vocab = 4096, .width = 256, .heads = 4, .mlp = 896, .context = 256, .mean_steps = 8};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::prelude<Block>, gyre::recurrent<gyre::stack<2, Block>>, gyre::coda<Block>> {};
constexpr gyre::index rows = 8, length = 256;

/// The cpu backend with a clock around every operation.
class timed_cpu : public gyre::cpu {
 public:
  using gyre::cpu::cpu;
  std::array<double, static_cast<std::size_t>(gyre::operation::count)>& times() const { return *times_; }

#define GYRE_TIMED(name)                                                     \
  template <class... A>                                                      \
  decltype(auto) name(A&&... arguments) {                                    \
    const span at(times()[static_cast<std::size_t>(gyre::operation::name)]); \
    return gyre::cpu::name(std::forward<A>(arguments)...);                   \
  }
  GYRE_TIMED(fill)
  GYRE_TIMED(copy)
  GYRE_TIMED(add)
  GYRE_TIMED(embed)
  GYRE_TIMED(embed_backward)
  GYRE_TIMED(rms_norm)
  GYRE_TIMED(add_rms_norm)
  GYRE_TIMED(rms_norm_backward)
  GYRE_TIMED(product)
  GYRE_TIMED(product_input_gradient)
  GYRE_TIMED(product_weight_gradient)
  GYRE_TIMED(grouped_product)
  GYRE_TIMED(grouped_product_input_gradient)
  GYRE_TIMED(grouped_product_weight_gradient)
  GYRE_TIMED(gated_silu)
  GYRE_TIMED(gated_silu_backward)
  GYRE_TIMED(rotary)
  GYRE_TIMED(rotary_backward)
  GYRE_TIMED(column_sum)
  GYRE_TIMED(attention)
  GYRE_TIMED(attention_backward)
  GYRE_TIMED(cross_entropy)
  GYRE_TIMED(random_normal)
  GYRE_TIMED(adamw_update)
  GYRE_TIMED(squared_norm)
#undef GYRE_TIMED

 private:
  struct span {
    double& total;
    double begin = gyre_benchmark::seconds();
    explicit span(double& t) : total(t) {}
    ~span() { total += gyre_benchmark::seconds() - begin; }
  };
  std::shared_ptr<std::array<double, static_cast<std::size_t>(gyre::operation::count)>> times_ =
      std::make_shared<std::array<double, static_cast<std::size_t>(gyre::operation::count)>>();
};

template <class Backend>
struct training {
  gyre::depth_draw draw;
  Backend device;
  gyre::network<Model, Backend, gyre::fp32> net{device, gyre::seed{1}};
  gyre::trainer<gyre::network<Model, Backend, gyre::fp32>, gyre::adamw, gyre::fixed_depth> trainer;
  std::vector<gyre::token> ids = std::vector<gyre::token>(rows * length), targets = ids;

  explicit training(const benchmark::State& state)
      : draw(gyre::depth_draw::of(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)))),
        device(static_cast<int>(state.range(2))),
        trainer(net, gyre::adamw{.lr = 1e-4},
                gyre::fixed_depth{static_cast<int>(state.range(0)), static_cast<int>(state.range(1))}) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<gyre::token>(i * 2654435761u % sizes.vocab);
      targets[i] = static_cast<gyre::token>((i + 1) * 2654435761u % sizes.vocab);
    }
    trainer.step(batch());
  }
  gyre::batch batch() const { return {ids, targets, rows, length}; }
  double flops() const {
    gyre::batch_layout layout;
    layout.assign_uniform(rows, length);
    return gyre::plan_pass<Model, Backend, gyre::fp32>(layout, draw, true).total().product_flops;
  }
};

void train_step(benchmark::State& state) {
  training<gyre::cpu> t(state);
  double peak = 0, time = 0;
  for (auto _ : state) {
    peak = std::max(peak, gyre_benchmark::register_rate<float>(t.device.pool()));
    const double begin = gyre_benchmark::seconds();
    benchmark::DoNotOptimize(t.trainer.step(t.batch()).loss);
    const double took = gyre_benchmark::seconds() - begin;
    state.SetIterationTime(took);
    time += took;
  }
  peak = std::max(peak, gyre_benchmark::register_rate<float>(t.device.pool()));
  const double rate = static_cast<double>(state.iterations()) * t.flops() / time;
  state.SetItemsProcessed(state.iterations() * rows * length);
  state.counters["GF"] = rate / 1e9;
  state.counters["of_peak"] = rate / peak;
}
BENCHMARK(train_step)
    ->Args({8, 4, 2})
    ->Args({8, 4, 1})
    ->ArgNames({"r", "k", "threads"})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void shares(benchmark::State& state) {
  training<timed_cpu> t(state);
  t.device.times().fill(0);
  const double begin = gyre_benchmark::seconds();
  for (auto _ : state) benchmark::DoNotOptimize(t.trainer.step(t.batch()).loss);
  const double whole = gyre_benchmark::seconds() - begin;
  double known = 0;
  for (std::size_t i = 0; i < t.device.times().size(); ++i) {
    if (t.device.times()[i] <= 0) continue;
    state.counters[std::string(gyre::operation_names[i])] = t.device.times()[i] / whole;
    known += t.device.times()[i];
  }
  state.counters["rest"] = 1 - known / whole;
}
BENCHMARK(shares)->Args({8, 4, 2})->ArgNames({"r", "k", "threads"})->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
