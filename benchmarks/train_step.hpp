// A training step of a model under Google Benchmark: arguments are recurrence steps, steps with gradient, threads; rows of 8 x 256
// tokens, AdamW.
//
//   train_step<Model>  items are tokens; GF counts products and scores; of_peak is GF over the rate that the same threads reach in
//                      registers, measured before every step and after the last
//   shares<Model>      the same step with a clock around every operation; counters are fractions of the step's time, and the rate
//                      of operations that multiply
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/ops/operations.hpp>
#include <gyre/train/adamw.hpp>
#include <gyre/train/trainer.hpp>

#include "peak.hpp"

namespace gyre_benchmark {

inline constexpr gyre::index rows = 8, length = 256;

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
  GYRE_TIMED(add_scaled)
  GYRE_TIMED(add_scaled_backward)
  GYRE_TIMED(gather)
  GYRE_TIMED(rotate)
  GYRE_TIMED(depth_attention)
  GYRE_TIMED(depth_attention_backward)
  GYRE_TIMED(route)
  GYRE_TIMED(route_backward)
  GYRE_TIMED(group_pairs)
  GYRE_TIMED(spread)
  GYRE_TIMED(collect)
  GYRE_TIMED(collect_backward)
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
    double begin = seconds();
    explicit span(double& t) : total(t) {}
    ~span() { total += seconds() - begin; }
  };
  std::shared_ptr<std::array<double, static_cast<std::size_t>(gyre::operation::count)>> times_ =
      std::make_shared<std::array<double, static_cast<std::size_t>(gyre::operation::count)>>();
};

template <class Model, class Backend>
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
      ids[i] = static_cast<gyre::token>(i * 2654435761u % Model::shape.vocab);
      targets[i] = static_cast<gyre::token>((i + 1) * 2654435761u % Model::shape.vocab);
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

template <class Model>
void train_step(benchmark::State& state) {
  training<Model, gyre::cpu> t(state);
  double peak = 0, time = 0;
  for (auto _ : state) {
    peak = std::max(peak, register_rate<float>(t.device.pool()));
    const double begin = seconds();
    benchmark::DoNotOptimize(t.trainer.step(t.batch()).loss);
    const double took = seconds() - begin;
    state.SetIterationTime(took);
    time += took;
  }
  peak = std::max(peak, register_rate<float>(t.device.pool()));
  const double rate = static_cast<double>(state.iterations()) * t.flops() / time;
  state.SetItemsProcessed(state.iterations() * rows * length);
  state.counters["GF"] = rate / 1e9;
  state.counters["of_peak"] = rate / peak;
}
template <class Model>
void shares(benchmark::State& state) {
  training<Model, timed_cpu> t(state);
  t.device.times().fill(0);
  const double begin = seconds();
  for (auto _ : state) benchmark::DoNotOptimize(t.trainer.step(t.batch()).loss);
  const double whole = seconds() - begin;
  gyre::batch_layout layout;
  layout.assign_uniform(rows, length);
  const auto costs = gyre::plan_pass<Model, timed_cpu, gyre::fp32>(layout, t.draw, true).costs;
  double known = 0;
  for (std::size_t i = 0; i < t.device.times().size(); ++i) {
    if (t.device.times()[i] <= 0) continue;
    const std::string name(gyre::operation_names[i]);
    state.counters[name] = t.device.times()[i] / whole;
    known += t.device.times()[i];
    if (costs[i].product_flops > 0)
      state.counters[name + "_GF"] =
          costs[i].product_flops * static_cast<double>(state.iterations()) / t.device.times()[i] / 1e9;
  }
  state.counters["rest"] = 1 - known / whole;
}

}  // namespace gyre_benchmark
