// A mixture of one type in training.
#pragma once

#include <utility>
#include <vector>

#include <gyre/analysis/depth_reading.hpp>

#include "accuracy.hpp"
#include "mixture_models.hpp"
#include "mixture_training.hpp"
#include "training_of.hpp"

namespace examples {

/// `Depth`: layers that a token passes. A stack of so many runs once, one layer so often.
template <gyre::architecture A, int Depth>
class mixture_training_of final : public training_of<A, gyre::adamw, mixture_training> {
 public:
  using base = training_of<A, gyre::adamw, mixture_training>;
  static constexpr int steps = A::loop::layers == 1 ? Depth : 1;

  mixture_training_of(const gyre::cpu& device, mixture_rules rules)
      : base(device, std::move(rules.rule), any_depth{gyre::fixed_depth{steps}}, std::move(rules.schedule), rules.options),
        meter_(this->net()) {}

  int steps_of_use() const override { return steps; }
  int depth() const override { return Depth; }
  gyre::index forward_flops(gyre::index length) const override {
    gyre::model_sizes sizes = gyre::sizes_of<A>(Depth);
    sizes.context = length;
    return gyre::cost_of(sizes).forward();
  }
  std::optional<accuracy> accuracy_on(std::span<const gyre::batch> rows, int depth) const override {
    return meter_.measure(rows, depth);
  }
  mixture_examination examine(std::span<const gyre::batch> rows) const override {
    struct both final : gyre::pass_observer<gyre::fp32> {
      gyre::expert_use<gyre::fp32> use{gyre::routers_of<A>()};
      gyre::depth_reading<gyre::fp32> reading;
      void routed(const gyre::routing_event<gyre::fp32>& event) override { use.routed(event); }
      void read_depths(const gyre::depth_reading_event<gyre::fp32>& event) override { reading.read_depths(event); }
    } seen;
    gyre::evaluate(this->net(), rows, steps,
                   {.states = this->options().seed, .state_scale = this->options().state_scale, .observer = &seen});
    mixture_examination result{seen.use.report(), {}};
    for (gyre::index reader = 0; reader < seen.reading.depths(); ++reader) {
      result.reading.emplace_back();
      for (gyre::index read = 0; read < seen.reading.depths(); ++read)
        result.reading.back().push_back(seen.reading.weight(reader, read));
    }
    return result;
  }

 private:
  mutable accuracy_meter<typename base::network_type> meter_;
};

}  // namespace examples
