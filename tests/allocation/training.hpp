#pragma once

#include <catch2/catch.hpp>

#include <vector>

#include <gyre/gyre.hpp>

#include "interpose.hpp"

namespace gyre_test {

template <class A, class P = gyre::fp32, class Rule>
void check_training(Rule rule) {
  gyre::network<A, gyre::cpu, P> net(gyre::cpu{2}, gyre::seed{1});
  gyre::trainer trainer(net, rule, gyre::uniform_depth{.low = 1, .high = 12, .backprop = 4});
  std::vector<gyre::token> ids(4 * 40), targets(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<gyre::token>(7 * i % 61), targets[i] = static_cast<gyre::token>(5 * i % 61);
  const gyre::batch rows{ids, targets, 4, 40};
  trainer.plan(4, 40);
  // The pool's scratch grows with the first tasks that each worker happens to take, so a few steps of the largest depth warm it.
  for (int i = 0; i < 8; ++i) trainer.step(rows);
  double loss = 0;
  CHECK(allocations_in([&] {
          for (int i = 0; i < 50; ++i) loss += trainer.step(rows).loss;
        }) == 0);
  CHECK(loss > 0);
}

}  // namespace gyre_test
