// Plans and passes: the dry run knows exactly what a pass takes, and wrong input is refused with its numbers.
#include <catch2/catch.hpp>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/model/pass.hpp>

#include "support/variants.hpp"

namespace {

using Model = gyre_test::variants::SandwichGrouped;
using Net = gyre::network<Model, gyre::reference, gyre::fp64>;
constexpr gyre::dims D = Model::shape;

struct fixture {
  Net net{{}, gyre::seed{2}};
  gyre::pass_memory<gyre::reference> memory{{}};
  std::vector<double> gradient = std::vector<double>(Net::parameter_count);

  auto run(const gyre::batch_layout& layout, std::vector<gyre::token> ids, std::vector<gyre::token> targets,
           gyre::depth_draw draw = {0, 1}) {
    return gyre::run_pass(net, memory, layout, ids, targets, {}, draw, 1.0, gradient.data());
  }
};

}  // namespace

TEST_CASE("the plan of a pass is exactly what it takes") {
  fixture f;
  for (const auto& lengths : {std::vector<gyre::index>{5, 5}, std::vector<gyre::index>{1}, std::vector<gyre::index>{3, 1, 4},
                              std::vector<gyre::index>{}})
    for (gyre::depth_draw draw : {gyre::depth_draw{0, 1}, gyre::depth_draw{1, 2}, gyre::depth_draw{7, 3}})
      for (bool gradients : {true, false}) {
        gyre::batch_layout layout;
        for (gyre::index n : lengths) layout.add(n, 0, 0);
        const std::vector<gyre::token> ids(static_cast<std::size_t>(layout.rows()), 1);
        const auto plan = gyre::plan_pass<Model, gyre::reference, gyre::fp64>(layout, draw, gradients);
        f.memory.prepare({});
        gyre::run_pass(f.net, f.memory, layout, ids, ids, {}, draw, 1.0, gradients ? f.gradient.data() : nullptr);
        CHECK(f.memory.tape().peak() == plan.tape_bytes);
        CHECK(f.memory.scratch().peak() == plan.scratch_bytes);
      }
}

TEST_CASE("tape memory at r = 64 is that of r = 8 when eight steps have gradients") {
  const auto layout = gyre::batch_layout::uniform(4, 5);
  const auto tape = [&](int r) {
    return gyre::plan_pass<Model, gyre::reference, gyre::fp64>(layout, {r - 8, 8}, true).tape_bytes;
  };
  CHECK(static_cast<double>(tape(64)) <= 1.02 * static_cast<double>(tape(8)));
  CHECK(tape(64) == tape(1000));
}

TEST_CASE("the plan counts the FLOPs of products and of causal scores") {
  const gyre::index sequences = 3, length = 4, tokens = sequences * length, r = 5;
  const auto layout = gyre::batch_layout::uniform(sequences, length);
  const auto plan = gyre::plan_pass<Model, gyre::reference, gyre::fp64>(layout, {static_cast<int>(r), 0}, false);
  const gyre::index h = D.width, qkv = h * (D.query_width() + 2 * D.key_value_width()), out = D.query_width() * h,
                    mlp = 3 * h * D.mlp;
  const gyre::index layer = tokens * (qkv + out + mlp) + 2 * sequences * length * (length + 1) / 2 * D.query_width();
  // Prelude and coda once, two layers a step; the adapter's input half once, its state half each step; the head.
  const gyre::index expected = layer * (2 + 2 * r) + tokens * (h * h * (1 + r) + h * D.vocab);
  CHECK(plan.total().product_flops == 2 * static_cast<double>(expected));
}

TEST_CASE("wrong input of a pass is refused with its numbers") {
  fixture f;
  const auto layout = gyre::batch_layout::uniform(1, 3);
  CHECK_THROWS_WITH(f.run(layout, {1, 2}, {1, 2}), "run_pass: 2 tokens and 2 targets for 3 rows");
  CHECK_THROWS_WITH(f.run(layout, {1, 2, D.vocab}, {1, 2, 3}), "run_pass: token 7 is outside the vocabulary of 7");
  CHECK_THROWS_WITH(f.run(layout, {1, -1, 2}, {1, 2, 3}), "run_pass: token -1 is outside the vocabulary of 7");
  CHECK_THROWS_WITH(f.run(layout, {1, 2, 3}, {1, 9, 3}), "run_pass: target 9 is outside the vocabulary of 7");
  CHECK_THROWS_WITH(f.run(gyre::batch_layout::uniform(1, 6), {1, 2, 3, 1, 1, 1}, {1, 2, 3, 1, 1, 1}),
                    "run_pass: a sequence of 6 tokens exceeds the context of 5");
  CHECK_THROWS_WITH(f.run(layout, {1, 2, 3}, {1, 2, 3}, {0, 0}), Catch::Contains("0 steps"));
  CHECK_THROWS_WITH(f.run(layout, {1, 2, 3}, {1, 2, 3}, {5, -3}), Catch::Contains("5 steps without and -3 with gradient"));
  CHECK_THROWS_WITH(f.run(layout, {1, 2, 3}, {1, 2, 3}, {-5, 8}), Catch::Contains("-5 steps without and 8 with gradient"));
  CHECK_NOTHROW(f.run(layout, {1, 2, 3}, {-1, 2, -1}));
}

TEST_CASE("rows without a target have no loss and no gradient") {
  fixture f;
  const auto layout = gyre::batch_layout::uniform(1, 3);
  const auto result = f.run(layout, {1, 2, 3}, {-1, -1, -1});
  CHECK(result.loss_sum == 0);
  for (double g : f.gradient) CHECK(g == 0);
}
