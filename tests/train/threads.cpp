// The same seed gives the same weights, bit for bit, for any number of threads and from run to run.
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/train/evaluate.hpp>
#include <gyre/train/huginn_adam.hpp>
#include <gyre/train/muon.hpp>

#include "support/sanitized.hpp"
#include "train/support.hpp"

namespace {

// Wide enough that products, updates and sums are cut into several tasks.
inline constexpr gyre::dims sizes{
    .vocab = 300, .width = 64, .heads = 4, .kv_heads = 2, .mlp = 160, .context = 40, .mean_steps = 4};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::recurrent<Block>, gyre::coda<Block>> {};
using network = gyre::network<Model, gyre::cpu, gyre::fp32>;

constexpr unsigned steps = gyre_test::sanitized ? 1 : 4;

template <class Rule>
std::pair<std::vector<float>, std::vector<double>> trained(Rule rule, int threads) {
  network net(gyre::cpu(threads), gyre::seed{1});
  gyre::trainer trainer(net, rule, gyre::lognormal_poisson{.mean = 3, .backprop = 2});
  std::vector<double> reports;
  for (unsigned step = 0; step < steps; ++step) {
    const gyre_test::random_rows data(5, 33 + static_cast<gyre::index>(step), step, sizes.vocab);
    const std::vector<gyre::batch> micro_batches{data.slice(0, 2), data.slice(2, 3)};
    const gyre::step_report r = trainer.step(micro_batches);
    for (const double x :
         {r.loss, r.gradient_norm, r.seen.token_correlation, r.seen.state_norm, r.seen.state_change, r.seen.head_input_norm})
      reports.push_back(x);
  }
  const gyre_test::random_rows data(5, 33, 9, sizes.vocab);
  const std::vector<gyre::batch> held_out{data.all()};
  reports.push_back(gyre::evaluate(net, held_out, 5).loss);
  return {gyre_test::copy_of(net), reports};
}

template <class Rule>
void check(Rule rule) {
  const auto one = trained(rule, 1);
  CHECK(trained(rule, 1) == one);
  for (const int threads : {2, 3}) {
    const auto several = trained(rule, threads);
    CAPTURE(threads);
    CHECK((several.first == one.first));
    CHECK(several.second == one.second);
  }
}

}  // namespace

TEST_CASE("training is bitwise the same for 1, 2 and 3 threads: adamw", "[threads][trainer]") {
  check(gyre::adamw{.lr = 0.01});
}
TEST_CASE("training is bitwise the same for 1, 2 and 3 threads: huginn_adam", "[threads][trainer]") {
  check(gyre::huginn_adam{.lr = 0.01});
}
TEST_CASE("training is bitwise the same for 1, 2 and 3 threads: muon", "[threads][trainer]") { check(gyre::muon{.lr = 0.01}); }
