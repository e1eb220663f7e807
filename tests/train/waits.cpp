// A training step waits for the device as often at any depth and with any optimiser: for each micro-batch, for the gradient's norm,
// and where there are experts for the weights whose biases the host moves.
// [own_unit]
#include <catch2/catch.hpp>

#include <memory>
#include <vector>

#include <gyre/policy/depth.hpp>
#include <gyre/train/huginn_adam.hpp>
#include <gyre/train/muon.hpp>
#include <gyre/train/trainer.hpp>

#include "parity/mixture_model.hpp"

namespace {

using gyre::index;

/// The reference, counting who waits for it.
class patient : public gyre::reference {
 public:
  int waits() const { return *waits_; }
  void finish() {
    ++*waits_;
    gyre::reference::finish();
  }

 private:
  std::shared_ptr<int> waits_ = std::make_shared<int>(0);
};

/// Without experts.
inline constexpr gyre::dims sizes{.vocab = 61, .width = 8, .heads = 2, .mlp = 6, .context = 8};
struct plain : gyre::model<sizes, gyre::recurrent<gyre::residual<gyre::pre_norm, gyre::gated_mlp<sizes>>, gyre::inject::add>> {
};

struct watching final : gyre::pass_observer<gyre::fp32> {
  int events = 0, readings = 0;
  bool gates = true;
  void routed(const gyre::routing_event<gyre::fp32>& event) override { ++events, gates = gates && !event.gates.empty(); }
  void read_depths(const gyre::depth_reading_event<gyre::fp32>&) override { ++readings; }
};

struct trained {
  int waits = 0;
  std::vector<std::int64_t> loads;
};
/// One step of two micro-batches with so many steps of the recurrence, the last two with gradients.
template <class Rule = gyre::adamw, class Model = gyre_test::Dreamer>
trained train(int depth, watching* observer = nullptr) {
  const patient device;
  gyre::network<Model, patient> net(device, gyre::seed{4});
  gyre::trainer trainer(net, Rule{}, gyre::fixed_depth{depth, 2});
  trainer.observe_passes(observer);
  std::vector<gyre::token> ids, targets;
  for (int i = 0; i < 21; ++i) ids.push_back((i * 17 + 3) % 61), targets.push_back(i % 7 > 4 ? -1 : (i * 5) % 61);
  const std::vector<gyre::batch> batches(2, gyre::batch{ids, targets, 3, 7});
  trainer.plan(3, 7);
  const int before = device.waits();
  trainer.step(std::span<const gyre::batch>(batches));
  trained result{device.waits() - before, {}};
  for (const auto& router : trainer.loads().routers())
    result.loads.insert(result.loads.end(), router.load.begin(), router.load.end());
  return result;
}

}  // namespace

TEST_CASE("a step waits as often with deeper recurrence", "[train]") {
  const trained shallow = train(2), deep = train(5);
  CHECK(deep.waits == shallow.waits);
  // Each micro-batch for its losses, monitors and choices; the step for the gradient's norm, and for the biases that it balances.
  CHECK(shallow.waits == 2 + 1 + 1);
  CHECK(deep.loads != shallow.loads);
  // Who listens hears at once, and the loads are the same.
  watching observer;
  const trained told = train(5, &observer);
  CHECK(told.loads == deep.loads);
  CHECK(told.waits > deep.waits);
  CHECK(observer.events == 2 * 5 * 2);  // micro-batches, depths, routers
  CHECK(observer.readings == 2 * 5);
  CHECK(observer.gates);
}

TEMPLATE_TEST_CASE("a step waits as often whatever the optimiser", "[train]", gyre::adamw, gyre::huginn_adam, gyre::muon) {
  CHECK(train<TestType>(3).waits == 2 + 1 + 1);
  CHECK(train<TestType, plain>(3).waits == 2 + 1);
}
