// Training on a backend whose calls return before their work is done: the same bits, because whoever reads waits.
// [own_unit]
#include <catch2/catch.hpp>
#include <tuple>
#include <vector>

#include <gyre/analysis/depth_reading.hpp>
#include <gyre/compose/mixture.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/train/adamw.hpp>
#include <gyre/train/evaluate.hpp>
#include <gyre/train/huginn_adam.hpp>
#include <gyre/train/muon.hpp>

#include "support/late.hpp"
#include "train/support.hpp"

namespace {

using gyre_test::late, gyre_test::random_rows;

constexpr gyre::dims sizes{.vocab = 11, .width = 8, .heads = 2, .mlp = 6, .context = 8};
// An expert that is no list of matrices: experts run one after the other.
struct Layer
    : gyre::mixture<
          gyre::sequential, gyre::depth_attention<sizes>, gyre::sequence_attention<sizes>,
          gyre::expert_attention<sizes, gyre::experts{.count = 6, .active = 2, .router_width = 4, .balance_weight = 0.01},
                                 gyre::residual<gyre::pre_norm, gyre::gated_mlp<sizes>>>> {};
struct Dreamer : gyre::model<sizes, gyre::recurrent<Layer, gyre::inject::none, gyre::initial_state::embedding>> {};

/// Everything that a training and what follows shows.
template <class B>
struct training {
  std::vector<std::int64_t> loads;
  std::vector<double> reports, losses, depths;
  std::vector<float> weights, moments, row_losses, gradient, logits;

  explicit training(B device) {
    gyre::network<Dreamer, B> net(device, gyre::seed{1});
    gyre::trainer trainer(net, gyre::adamw{.lr = 1e-2}, gyre::fixed_depth{3});
    gyre::depth_reading<gyre::fp32> reading;
    trainer.observe_passes(&reading);
    const random_rows rows(4, 8);
    for (int i = 0; i < 3; ++i) {
      const gyre::step_report r = trainer.step(rows.all());
      for (const double x : {r.loss, r.gradient_norm, r.seen.token_correlation, r.seen.state_change, r.expert_load})
        reports.push_back(x);
      for (const auto& router : trainer.loads().routers()) loads.insert(loads.end(), router.load.begin(), router.load.end());
    }
    trainer.step(rows.all());
    weights = gyre_test::copy_of(net);
    trainer.step(rows.all());
    moments = gyre_test::moments_of(trainer);
    const std::vector<gyre::batch> batches{rows.slice(0, 2), rows.slice(2, 2)};
    losses.push_back(gyre::evaluate(net, batches, 2).loss);
    for (gyre::index l = 0; l < reading.depths(); ++l) depths.push_back(reading.weight(l, 0));

    gyre::pass_memory<B> memory(device);
    const gyre::index tokens = 4 * 8, count = Dreamer::parameter_count;
    const auto layout = gyre::batch_layout::uniform(4, 8);
    const gyre::device_buffer<B> room(device, static_cast<std::size_t>(count + tokens * sizes.vocab) * sizeof(float));
    float *const g = room.template as<float>(), *const z = g + count;
    device.fill(gyre::matrix_view<float>(g, 1, count), 0.0f);
    const auto pass = gyre::run_pass(net, memory, layout, rows.inputs, rows.targets, {}, {1, 2}, 1, g);
    row_losses.assign(pass.losses.begin(), pass.losses.end());
    gradient.assign(g, g + count);
    gyre::run_logits(net, memory, layout, rows.inputs, {}, 2, gyre::matrix_view<float>(z, tokens, sizes.vocab));
    logits.assign(z, z + tokens * sizes.vocab);
  }
};

}  // namespace

TEST_CASE("training waits for the device where the host reads and writes", "[trainer][late]") {
  const training plain(gyre::reference{});
  const training waited(late(gyre::reference{}));
  CHECK(waited.reports == plain.reports);
  CHECK(waited.loads == plain.loads);
  CHECK(waited.weights == plain.weights);
  CHECK(waited.moments == plain.moments);
  CHECK(waited.losses == plain.losses);
  CHECK(waited.depths == plain.depths);
  CHECK(waited.row_losses == plain.row_losses);
  CHECK(waited.gradient == plain.gradient);
  CHECK(waited.logits == plain.logits);
}

TEST_CASE("weights and moments are read after updates", "[trainer][late]") {
  using numbers = std::vector<float>;
  const auto run = [](auto device) {
    gyre::network<Dreamer, decltype(device)> net(device, gyre::seed{1});
    const auto& seen = net;
    gyre::optimizer_state<gyre::adamw, decltype(net)> state(device);
    const gyre::device_buffer<decltype(device)> room(device, Dreamer::parameter_count * sizeof(float));
    std::vector<numbers> all;
    for (int i = 0; i < 3; ++i) {
      device.fill(gyre::matrix_view<float>(room.template as<float>(), 1, Dreamer::parameter_count), 0.5f);
      state.apply(gyre::adamw{.lr = 0.1}, net, room.template as<float>(), 1, 1);
      if (i == 0) all.emplace_back(seen.values().begin(), seen.values().end());
      if (i == 1) all.emplace_back(net.values().begin(), net.values().end());
      if (i == 2) all.emplace_back(state.moment(0, 0).begin(), state.moment(0, 0).end());
    }
    return all;
  };
  CHECK(run(late(gyre::reference{})) == run(gyre::reference{}));
}

TEMPLATE_TEST_CASE("optimisers leave all that they do on the device", "[trainer][late]", gyre::huginn_adam, gyre::muon) {
  const auto run = [](auto device) {
    gyre::network<Dreamer, decltype(device)> net(device, gyre::seed{1});
    gyre::trainer trainer(net, TestType{.lr = 1e-2}, gyre::fixed_depth{3});
    const random_rows rows(4, 8);
    std::vector<double> reports;
    for (int i = 0; i < 2; ++i) {
      const gyre::step_report r = trainer.step(rows.all());
      for (const double x : {r.loss, r.gradient_norm, r.seen.token_correlation, r.seen.state_norm, r.seen.state_change,
                             r.seen.head_input_norm, r.auxiliary_loss, r.expert_load})
        reports.push_back(x);
    }
    return std::pair(reports, gyre_test::copy_of(net));
  };
  const auto plain = run(gyre::reference{});
  CHECK(plain.first[6] > 0);
  CHECK(run(late(gyre::reference{})) == plain);
}

TEST_CASE("a launched pass is not waited for", "[trainer][late]") {
  late device(gyre::reference{});
  const gyre::network<Dreamer, late<gyre::reference>> net(device, gyre::seed{1});
  const random_rows rows(2, 8);
  const auto layout = gyre::batch_layout::uniform(2, 8);
  gyre::pass_memory<late<gyre::reference>> memory(device);
  const auto run = [&](auto call) {
    const auto result =
        call(net, memory, layout, rows.inputs, rows.targets, gyre::state_key{}, gyre::depth_draw{1, 2}, 1.0f, nullptr);
    std::vector<float> at_once(result.losses.begin(), result.losses.end());
    device.finish();
    return std::tuple(at_once, std::vector<float>(result.losses.begin(), result.losses.end()), result.loss_sum, result.sums[0]);
  };
  const auto [early, losses, sum, left] = run([](auto&&... a) { return gyre::launch_pass(a...); });
  const auto [waited, same, total, first] = run([](auto&&... a) { return gyre::run_pass(a...); });
  CHECK(waited == same);
  CHECK(losses == same);
  CHECK(early != losses);
  CHECK(sum == 0);
  CHECK(total > 0);
  CHECK(left == total);
  CHECK(first == total);
}
