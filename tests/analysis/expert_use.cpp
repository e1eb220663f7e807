#include <gyre/analysis/expert_use.hpp>

#include <catch2/catch.hpp>

#include <gyre/backend/cpu.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/mixture_model.hpp>
#include <gyre/train/evaluate.hpp>

#include <gyre/analysis/depth_reading.hpp>

namespace {

using event = gyre::routing_event<gyre::fp32>;

void choose(gyre::expert_use<gyre::fp32>& use, gyre::index router, int step, int steps, std::vector<std::int32_t> chosen) {
  const gyre::batch_layout layout = gyre::batch_layout::uniform(1, static_cast<gyre::index>(chosen.size() / 2));
  use.routed({router, 0, step, steps, 4, 2, chosen, {}, layout});
}

constexpr gyre::dims sizes{.vocab = 13, .width = 16, .heads = 4, .kv_heads = 2, .mlp = 12, .context = 8};
struct Dreamer
    : gyre::mixture_model<
          sizes, gyre::mixture<gyre::sequential, gyre::depth_attention<sizes>, gyre::sequence_attention<sizes>,
                               gyre::expert_attention<sizes, gyre::experts{.count = 6, .active = 2, .router_width = 8}>>> {};

}  // namespace

TEST_CASE("diversity is the number of experts that are used alike") {
  CHECK(gyre::diversity(std::vector<std::int64_t>{5, 5, 5, 5}) == Approx(4));
  CHECK(gyre::diversity(std::vector<std::int64_t>{7, 0, 0}) == Approx(1));
  CHECK(gyre::diversity(std::vector<std::int64_t>{3, 1}) == Approx(std::exp(-0.75 * std::log(0.75) - 0.25 * std::log(0.25))));
  CHECK(gyre::diversity(std::vector<std::int64_t>{0, 0}) == 0);
}

TEST_CASE("the use of shared experts by depth") {
  gyre::expert_use<gyre::fp32> use({40});
  choose(use, 7, 0, 2, {2, 3});  // another router
  // Two tokens, two depths, two of four experts each.
  choose(use, 40, 0, 2, {0, 1, 0, 1});
  choose(use, 40, 1, 2, {0, 2, 0, 1});
  const gyre::expert_use_report r = use.report();
  CHECK((r.experts == 4 && r.active == 2 && r.depths == 2 && r.shared));
  CHECK(r.loads == std::vector<std::int64_t>{2, 2, 0, 0, 2, 1, 1, 0});
  CHECK(r.per_depth_diversity == Approx((2 + std::exp(1.5 * std::log(2))) / 2));  // 1/2, 1/4, 1/4: entropy 1.5 ln 2
  CHECK(r.pooled_diversity == Approx(gyre::diversity(std::vector<std::int64_t>{4, 3, 1, 0})));
  CHECK(r.distinct_sets == 1.5);
  CHECK(r.distinct_per_token == Approx((3. / 4 + 2. / 4) / 2));
  CHECK(r.used_at_least == std::vector<double>{0.75, 0.5});
  CHECK(r.hits == 1);
}

TEST_CASE("a layered model has a router for each depth") {
  gyre::expert_use<gyre::fp32> use({40, 60});
  choose(use, 40, 0, 1, {0, 1});
  choose(use, 60, 0, 1, {2, 3});
  const gyre::expert_use_report r = use.report();
  CHECK((r.depths == 2 && !r.shared && r.used_at_least.empty()));
  CHECK(r.loads == std::vector<std::int64_t>{1, 1, 0, 0, 0, 0, 1, 1});
  CHECK_THROWS_WITH(gyre::expert_use<gyre::fp32>({}), "expert_use: no routers to watch");
}

TEST_CASE("an evaluation shows the use of experts and which depth reads which") {
  gyre::network<Dreamer, gyre::cpu, gyre::fp32> net(gyre::cpu{1}, gyre::seed{3});
  std::vector<gyre::token> ids(16), targets(16, 1);
  for (std::size_t i = 0; i < 16; ++i) ids[i] = static_cast<gyre::token>(i * 5 % 13);
  const std::vector<gyre::batch> batches{{ids, targets, 2, 8}};
  const auto routers = gyre::routers_of<Dreamer>();
  REQUIRE(routers.size() == 1);
  gyre::expert_use<gyre::fp32> use(routers);
  gyre::depth_reading<gyre::fp32> reading;
  gyre::evaluate(net, batches, 3, {.observer = &use});
  gyre::evaluate(net, batches, 3, {.observer = &reading});
  const auto r = use.report();
  CHECK(r.depths == 3);
  CHECK(std::accumulate(r.loads.begin(), r.loads.end(), std::int64_t{0}) == 16 * 3 * 2);
  CHECK(r.distinct_per_token > 1. / 3);
  CHECK(r.distinct_per_token <= 1);
  REQUIRE(reading.depths() == 3);
  for (gyre::index l = 0; l < 3; ++l) {
    double total = 0;
    for (gyre::index j = 0; j < 3; ++j) {
      total += reading.weight(l, j);
      if (j > l) CHECK(reading.weight(l, j) == 0);
    }
    CHECK(total == Approx(1).epsilon(1e-5));
  }
}
