#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/model/pass.hpp>

#include "support/variants.hpp"

using Model = gyre_test::variants::SandwichGrouped;

TEST_CASE("logits are those behind the losses of a pass") {
  gyre::network<Model, gyre::reference, gyre::fp64> net({}, gyre::seed{2});
  gyre::pass_memory<gyre::reference> memory{{}};
  gyre::batch_layout layout;
  layout.add(3, 0, 4), layout.add(2, 0, 9);
  const std::vector<gyre::token> ids{1, 2, 3, 4, 5}, targets{2, 3, 4, 5, 6};
  std::vector<double> logits(5 * 7), losses;
  const gyre::state_key key{gyre::seed{3}, 8};
  gyre::run_logits(net, memory, layout, ids, key, 3, gyre::matrix_view<double>(logits.data(), 5, 7));
  const auto result = gyre::run_pass(net, memory, layout, ids, targets, key, {3, 0}, 1.0, nullptr);
  for (std::size_t i = 0; i < 5; ++i) {
    double sum = 0;
    for (std::size_t v = 0; v < 7; ++v) sum += std::exp(logits[i * 7 + v]);
    CHECK(result.losses[i] == Approx(std::log(sum) - logits[i * 7 + static_cast<std::size_t>(targets[i])]).epsilon(1e-12));
  }
  CHECK_THROWS_WITH(gyre::run_logits(net, memory, layout, ids, key, 3, gyre::matrix_view<double>(logits.data(), 5, 6)),
                    "run_logits: room for 5 x 6 logits, not 5 x 7");
}
