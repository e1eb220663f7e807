// A network of one architecture and its trainer with one optimiser, behind the interface that a training loop sees.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/model/network.hpp>

#include "rules.hpp"
#include "training.hpp"

namespace examples {

/// `Interface` is `training`, or what extends it.
template <gyre::architecture A, gyre::optimizer Rule, class Interface = training, gyre::precision P = gyre::fp32,
          gyre::backend B = gyre::cpu>
class training_of : public Interface {
 public:
  using network_type = gyre::network<A, B, P>;
  using trainer_type = gyre::trainer<network_type, Rule, any_depth, any_schedule>;

  training_of(B device, Rule rule, any_depth depth, any_schedule schedule, gyre::trainer_options options)
      : net_(std::move(device), options.seed),
        trainer_(net_, std::move(rule), std::move(depth), std::move(schedule), options) {}

  network_type& net() { return net_; }
  const network_type& net() const { return net_; }

  gyre::depth_draw next_depth() const override { return trainer_.next_depth(); }
  void accumulate(const gyre::batch& rows) override { trainer_.accumulate(rows); }
  gyre::step_report update() override { return trainer_.update(); }
  std::uint64_t steps() const override { return trainer_.steps(); }
  std::uint64_t tokens_seen() const override { return trainer_.tokens_seen(); }
  const gyre::trainer_options& options() const override { return trainer_.options(); }

  std::vector<gyre::evaluation> evaluate(std::span<const gyre::batch> rows, std::span<const int> depths,
                                         const std::function<bool()>& stop) const override {
    return gyre::evaluate(net_, rows, depths, {.states = options().seed, .state_scale = options().state_scale, .stop = stop});
  }
  std::filesystem::path save(const std::filesystem::path& run, const gyre::json& data) const override {
    return gyre::save_checkpoint(trainer_, run, data);
  }
  gyre::resumed load(const std::filesystem::path& checkpoint) override { return gyre::load_checkpoint(trainer_, checkpoint); }

  int vocabulary() const override { return A::shape.vocab; }
  int most_depth() const override { return trainer_.depth().most_draw().total(); }
  int context() const override { return A::shape.context; }
  gyre::index parameters() const override { return A::parameter_count; }
  double flops(gyre::index rows, gyre::index length, gyre::depth_draw draw) const override {
    gyre::batch_layout layout;
    layout.assign_uniform(rows, length);
    return gyre::plan_pass<A, B, P>(layout, draw, true).total().product_flops;
  }
  std::size_t plan(gyre::index rows, gyre::index length) override {
    const gyre::pass_plan& plan = trainer_.plan(rows, length);
    return plan.tape_bytes + plan.scratch_bytes;
  }

 private:
  network_type net_;
  trainer_type trainer_;
};

}  // namespace examples
