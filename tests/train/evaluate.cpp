// Evaluation: the loss of plain passes, whatever the cut of the batches.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include <gyre/train/evaluate.hpp>

#include "train/support.hpp"

using gyre_test::random_rows;

TEST_CASE("evaluation is the mean of the losses of plain passes at any depth", "[evaluate]") {
  const random_rows data(5, 6);
  gyre_test::reference_network<> net(gyre::reference{}, gyre::seed{1});
  gyre_test::scatter(net);
  double counted = 0;
  for (const gyre::token t : data.targets) counted += t >= 0;
  const std::vector<int> depths{1, 2, 4, 8, 16, 32, 64};
  const std::vector<gyre::batch> one{data.all()}, cut{data.slice(0, 1), data.slice(1, 4)};
  const auto whole = gyre::evaluate(net, one, depths, {.states = gyre::seed{3}}),
             parts = gyre::evaluate(net, cut, depths, {.states = gyre::seed{3}});
  gyre::pass_memory<gyre::reference> memory(net.device());
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const auto pass = gyre::run_pass(net, memory, gyre::batch_layout::uniform(5, 6), data.inputs, data.targets,
                                     gyre::state_key{gyre::seed{3}, 0, 1}, {depths[i], 0}, 1.0, nullptr);
    CHECK(whole[i].depth == depths[i]);
    CHECK(whole[i].tokens == static_cast<gyre::index>(counted));
    CHECK(std::abs(whole[i].loss - pass.loss_sum / counted) <= 1e-13);
    CHECK(std::abs(parts[i].loss - whole[i].loss) <= 1e-13);
    CHECK(gyre::evaluate(net, one, depths[i], {.states = gyre::seed{3}}).loss == whole[i].loss);  // bit for bit
  }
  CHECK(gyre::evaluate(net, one, 4, {.states = gyre::seed{4}}).loss != whole[2].loss);
  CHECK(whole[0].bits_per_token() == Approx(whole[0].loss / std::log(2.0)));
  CHECK(whole[0].bits_per_byte(2 * counted) == Approx(whole[0].loss / std::log(2.0) / 2));
  CHECK(whole[0].perplexity() == Approx(std::exp(whole[0].loss)));
}

TEST_CASE("evaluation refuses depths and batches that mean nothing", "[evaluate]") {
  const random_rows data(1, 4);
  gyre_test::reference_network<> net(gyre::reference{}, gyre::seed{1});
  const std::vector<gyre::batch> one{data.all()}, none;
  CHECK_THROWS_WITH(gyre::evaluate(net, one, 0), "evaluate: 0 steps; a recurrence runs at least 1");
  CHECK_THROWS_WITH(gyre::evaluate(net, none, 1), "evaluate: no target counts in these batches");
}

TEST_CASE("an evaluation that is stopped returns the depths that it has done", "[trainer]") {
  const random_rows data(3, 4);
  gyre_test::reference_network<> net(gyre::reference{}, gyre::seed{1});
  const std::vector<gyre::batch> rows{data.slice(0, 1), data.slice(1, 2)};
  const std::vector<int> depths{1, 2, 4};
  int asked = 0;
  const auto stop = [&] { return ++asked > 3; };  // within the second depth
  const auto done = gyre::evaluate(net, rows, depths, {.stop = stop});
  REQUIRE(done.size() == 1);
  CHECK(done[0].loss == gyre::evaluate(net, rows, 1).loss);
  CHECK_THROWS_WITH(gyre::evaluate(net, rows, 2, {.stop = [] { return true; }}), "evaluate: stopped before depth 2 was done");
}
