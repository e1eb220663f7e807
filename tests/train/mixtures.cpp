// Training models of experts: loads are counted and balanced, nothing depends on threads, and a resumed run is the uninterrupted
// one. [threads] [own_unit]
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include <gyre/backend/cpu.hpp>
#include <gyre/compose/checkpoint.hpp>
#include <gyre/compose/mixture.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/mixture_model.hpp>
#include <gyre/train/adamw.hpp>
#include <gyre/train/checkpoint.hpp>
#include <gyre/train/trainer.hpp>

#include "io/support.hpp"

namespace {

constexpr gyre::dims sizes{.vocab = 13, .width = 16, .heads = 4, .kv_heads = 1, .mlp = 12, .context = 8};
constexpr gyre::routing maps{.count = 3, .active = 2, .router_width = 4};
struct Layer : gyre::mixture<gyre::sequential, gyre::depth_attention<sizes, gyre::depth_attention_options{.projections = maps}>,
                             gyre::sequence_attention<sizes, gyre::attention_options{.query_key_norm = true}>,
                             gyre::expert_attention<sizes, gyre::experts{.count = 6, .active = 2, .router_width = 8}>> {};
struct Dreamer : gyre::model<sizes, gyre::recurrent<Layer, gyre::inject::none, gyre::initial_state::embedding>,
                             gyre::initialised<gyre::mixture_initialisation<>>> {};
using network = gyre::network<Dreamer, gyre::cpu, gyre::fp32>;
constexpr gyre::fixed_depth depth{3};

struct tokens {
  std::vector<gyre::token> inputs, targets;
  gyre::index rows, length = 8;
  explicit tokens(gyre::index rows_, std::uint64_t number = 1) : rows(rows_) {
    const gyre::random_stream noise(gyre::seed{number}, gyre::purpose::task);
    for (std::uint32_t i = 0; i < rows * length; ++i) {
      inputs.push_back(static_cast<gyre::token>(noise.bits({.position = i}) % 13));
      targets.push_back(static_cast<gyre::token>(noise.bits({.position = i, .feature = 1}) % 13));
    }
  }
  gyre::batch all() const { return {inputs, targets, rows, length}; }
};

std::vector<float> weights_after(int threads, int steps) {
  network net(gyre::cpu{threads}, gyre::seed{3});
  gyre::trainer trainer(net, gyre::adamw{.lr = 1e-3}, depth);
  for (int i = 0; i < steps; ++i) trainer.step(tokens(5, static_cast<std::uint64_t>(i)).all());
  return {net.values().begin(), net.values().end()};
}

std::int64_t sum(const std::vector<std::int64_t>& x) { return std::accumulate(x.begin(), x.end(), std::int64_t{0}); }

/// The biases of every router, one after the other.
template <class Network>
std::vector<float> biases(const Network& net) {
  std::vector<float> all;
  for (const gyre::tensor_entry& e : gyre::parameter_table<Dreamer>::entries)
    if (e.kind == gyre::role::selection_bias)
      for (gyre::index i = 0; i < e.shape.size(); ++i) all.push_back(net.values()[static_cast<std::size_t>(e.offset + i)]);
  return all;
}

}  // namespace

TEST_CASE("training experts has the same bits for any number of threads", "[trainer][threads]") {
  const auto one = weights_after(1, 4);
  CHECK(weights_after(2, 4) == one);
  CHECK(weights_after(3, 4) == one);
}

TEST_CASE("loads count every token at every depth, and no padding", "[trainer]") {
  network net(gyre::cpu{1}, gyre::seed{3});
  gyre::trainer trainer(net, gyre::adamw{}, depth);
  tokens t(4);
  trainer.step(t.all());
  REQUIRE(trainer.loads().routers().size() == 2);
  for (const auto& router : trainer.loads().routers()) CHECK(sum(router.load) == 4 * 8 * 3 * 2);
  // Row 1 counts up to its fifth token, row 2 not at all; a target that does not count between others changes nothing.
  for (const std::size_t i : std::initializer_list<std::size_t>{13, 14, 15, 3, 16, 17, 18, 19, 20, 21, 22, 23})
    t.targets[i] = -1;
  const gyre::step_report report = trainer.step(std::vector<gyre::batch>{t.all(), tokens(4).all()});
  for (const auto& router : trainer.loads().routers()) {
    CHECK(sum(router.load) == (8 + 5 + 8 + 4 * 8) * 3 * 2);
    CHECK(*std::max_element(router.load.begin(), router.load.end()) <= (8 + 5 + 8 + 4 * 8) * 3);
  }
  CHECK(report.expert_load >= 1);
  CHECK(report.expert_load <= 6);
}

TEST_CASE("a layer that runs again in backward is counted once", "[trainer]") {
  struct checkpointed : gyre::mixture_model<sizes, gyre::checkpoint<Layer>> {};
  gyre::network<checkpointed, gyre::cpu, gyre::fp32> net(gyre::cpu{1}, gyre::seed{3});
  gyre::trainer trainer(net, gyre::adamw{}, depth);
  trainer.step(tokens(4).all());
  for (const auto& router : trainer.loads().routers()) CHECK(sum(router.load) == 4 * 8 * 3 * 2);
}

TEST_CASE("a bias of several rows has its own loads for each of the first depths, and the last row those of the others",
          "[trainer]") {
  using two_rows = gyre::expert_attention<sizes, gyre::experts{.count = 6, .active = 2, .router_width = 8, .bias_rows = 2}>;
  struct model : gyre::mixture_model<sizes, gyre::mixture<gyre::sequential, gyre::sequence_attention<sizes>, two_rows>> {};
  gyre::network<model, gyre::cpu, gyre::fp32> net(gyre::cpu{1}, gyre::seed{3});
  gyre::trainer trainer(net, gyre::adamw{}, depth);
  trainer.step(tokens(4).all());
  REQUIRE(trainer.loads().routers().size() == 1);
  const auto& load = trainer.loads().routers()[0].load;
  REQUIRE(load.size() == 12);
  CHECK(std::accumulate(load.begin(), load.begin() + 6, std::int64_t{0}) == 4 * 8 * 2);
  CHECK(std::accumulate(load.begin() + 6, load.end(), std::int64_t{0}) == 4 * 8 * 2 * 2);
}

TEST_CASE("biases move against the loads of the step, by the rate, and not where they are frozen", "[trainer]") {
  network net(gyre::cpu{1}, gyre::seed{3});
  gyre::trainer trainer(net, gyre::adamw{}, depth, gyre::trainer_options{.balance = {.rate = 0.25}});
  trainer.step(tokens(4).all());
  const auto moved = biases(net);
  std::size_t at = 0;
  for (const auto& router : trainer.loads().routers())
    for (const std::int64_t load : router.load) {
      const auto experts = static_cast<std::int64_t>(router.load.size()), total = sum(router.load);
      CHECK(moved[at++] == (load * experts < total ? 0.25f : load * experts > total ? -0.25f : 0.f));
    }
  CHECK(at == moved.size());
  CHECK(std::count(moved.begin(), moved.end(), 0.f) < 3);

  gyre::trainer frozen(net, gyre::adamw{}, depth, gyre::trainer_options{.balance = {.rate = 0.25, .frozen = true}});
  frozen.step(tokens(4, 2).all());
  CHECK(biases(net) == moved);
}

TEST_CASE("who observes hears of every choice, its gates and its load", "[trainer]") {
  struct recorder final : gyre::pass_observer<gyre::fp32> {
    std::vector<int> steps;
    std::int64_t pairs = 0;
    void routed(const gyre::routing_event<gyre::fp32>& e) override {
      steps.push_back(e.step);
      pairs += static_cast<std::int64_t>(e.chosen.size());
      CHECK(e.steps == 3);
      CHECK(e.layout.rows() * e.active == static_cast<gyre::index>(e.chosen.size()));
      for (std::size_t i = 0; i < e.chosen.size(); i += 2) {
        CHECK((0 <= e.chosen[i] && e.chosen[i] < e.chosen[i + 1] && e.chosen[i + 1] < e.experts));
        CHECK(std::abs(e.gates[i] + e.gates[i + 1] - 1) <= 4 * std::numeric_limits<float>::epsilon());
      }
    }
  } heard;
  network net(gyre::cpu{1}, gyre::seed{3});
  gyre::trainer trainer(net, gyre::adamw{}, depth);
  trainer.observe_passes(&heard);
  trainer.step(tokens(4).all());
  CHECK(heard.steps == std::vector<int>{0, 0, 1, 1, 2, 2});
  CHECK(heard.pairs == 4 * 8 * 3 * 2 * 2);
}

TEST_CASE("a resumed training of experts is bitwise the uninterrupted one, biases included", "[trainer][checkpoint]") {
  const gyre_test::scratch_folder folder;
  const auto uninterrupted = weights_after(1, 4);
  {
    network net(gyre::cpu{1}, gyre::seed{3});
    gyre::trainer trainer(net, gyre::adamw{.lr = 1e-3}, depth);
    for (std::uint64_t i = 0; i < 2; ++i) trainer.step(tokens(5, i).all());
    gyre::save_checkpoint(trainer, folder / "run");
  }
  network net(gyre::cpu{1}, gyre::seed{99});
  gyre::trainer trainer(net, gyre::adamw{.lr = 1e-3}, depth);
  REQUIRE(gyre::resume_latest(trainer, folder / "run"));
  for (std::uint64_t i = 2; i < 4; ++i) trainer.step(tokens(5, i).all());
  CHECK(std::equal(uninterrupted.begin(), uninterrupted.end(), net.values().begin()));
  const auto b = biases(net);
  CHECK(std::any_of(b.begin(), b.end(), [](float x) { return x != 0; }));
}

TEST_CASE("a wrong rate of the balance is refused", "[trainer]") {
  network net(gyre::cpu{1}, gyre::seed{3});
  CHECK_THROWS_WITH(gyre::trainer(net, gyre::adamw{}, depth, gyre::trainer_options{.balance = {.rate = -1}}),
                    "trainer: balance.rate is -1; it must be finite and not negative");
}
