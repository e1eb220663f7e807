// From settings to the objects that a session runs: the data, the rules, and a model of the catalogue in training.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "models.hpp"
#include "place.hpp"
#include "settings.hpp"
#include "training_data.hpp"
#include "training_of.hpp"

namespace examples {

inline std::unique_ptr<training_data> make_data(const settings& s) {
  if (s.task == "hops") return std::make_unique<hops_data>(s.rows, gyre::seed{s.seed});
  text_data::options wanted;
  wanted.rows = s.rows, wanted.length = s.length;
  wanted.rule = s.packing == "drop_tail" ? gyre::packing::drop_tail : gyre::packing::keep_tail;
  wanted.hold_out = static_cast<std::size_t>(s.hold_out), wanted.seed = gyre::seed{s.seed};
  return std::make_unique<text_data>(s.texts, wanted);
}

/// `total` is the optimiser steps of the whole training, which a curriculum follows.
inline any_depth make_depth(const settings& s, std::uint64_t total) {
  const std::uint64_t grow = s.curriculum ? total : 0;
  if (s.depth == "fixed") {
    const int steps = static_cast<int>(s.mean_steps);
    gyre::require(steps == s.mean_steps, "--depth fixed: --mean-steps is ", s.mean_steps, "; it must be a whole number");
    return {gyre::fixed_depth{steps, s.backprop}, grow};
  }
  if (s.depth == "uniform") return {gyre::uniform_depth{s.low, s.high, s.backprop}, grow};
  return {gyre::lognormal_poisson{.mean = s.mean_steps, .backprop = s.backprop}, grow};
}
inline any_schedule make_schedule(const settings& s) {
  if (s.schedule == "cosine") return {gyre::warmup_cosine{s.warm_up, s.floor}};
  const bool cools = s.schedule == "cooldown";
  return {gyre::warmup_constant_cooldown{s.warm_up, cools ? s.cooldown_start : 1, cools ? s.floor : 1}};
}

/// A new model with its trainer, in precision P. `total` as in make_depth.
template <gyre::architecture A, gyre::precision P, gyre::backend B, gyre::optimizer Rule>
std::unique_ptr<training> make_training_of(const Rule& rule, const settings& s, const B& device, std::uint64_t total) {
  gyre::trainer_options options;
  options.seed = gyre::seed{s.seed}, options.total_steps = total;
  options.clip = s.clip, options.state_scale = s.state_scale;
  return std::make_unique<training_of<A, Rule, training, P, B>>(device, rule, make_depth(s, total), make_schedule(s), options);
}
inline gyre::adamw make_adamw(const settings& s) { return {.lr = s.lr, .decay = s.decay}; }
/// A model of the catalogue with the rule of the settings.
template <gyre::precision P, gyre::backend B>
std::unique_ptr<training> make_training_in(const settings& s, const B& device, std::uint64_t total) {
  return models::visit(s.model, [&]<class A>() {
    const auto with = [&](const auto& rule) { return make_training_of<A, P>(rule, s, device, total); };
    if (s.optimizer == "muon")
      return with(gyre::muon{.lr = s.lr, .decay = s.decay, .others = {.lr = s.lr / 20, .decay = s.decay}});
    if (s.optimizer == "huginn_adam") return with(gyre::huginn_adam{.lr = s.lr, .running_start = s.running_start});
    return with(make_adamw(s));
  });
}
// Units of their own compile these.
std::unique_ptr<training> make_mixed_training(const settings& s, const gyre::cpu& device, std::uint64_t total);
std::unique_ptr<training> make_simulated_training(const settings& s, std::uint64_t total);
std::unique_ptr<training> make_cuda_training(const settings& s, std::uint64_t total);        // in fp32
std::unique_ptr<training> make_mixed_cuda_training(const settings& s, std::uint64_t total);  // in bf16_mixed

/// In the precision of the settings. The backend is no setting: checkpoints of one go on with another.
inline std::unique_ptr<training> make_training(const settings& s, const place& where, std::uint64_t total) {
  const bool mixed = s.precision == "bf16_mixed";
  if (where.backend == "simulated_cuda") return make_simulated_training(s, total);
  if (where.backend == "cuda") {
#if GYRE_PROGRAMS_WITH_CUDA
    return mixed ? make_mixed_cuda_training(s, total) : make_cuda_training(s, total);
#else
    refuse_cuda();
#endif
  }
  const gyre::cpu device(where.threads);
  return mixed ? make_mixed_training(s, device, total) : make_training_in<gyre::fp32>(s, device, total);
}

}  // namespace examples
