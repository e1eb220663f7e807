// Operations of backend `cuda` on a GPU, compared with the reference.
#pragma once

#include <gyre/parity/catch.hpp>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <gyre/backend/cuda.hpp>
#include <gyre/backend/reference.hpp>
#include <gyre/parity/suite.hpp>

#include "support/skip.hpp"

namespace gyre_test {

/// The machine's first GPU. Without one the test case is skipped, and says why.
inline std::optional<gyre::cuda> gpu() {
  try {
    return gyre::cuda();
  } catch (const gyre::error& why) {
    skip(why.what());
    return std::nullopt;
  }
}

/// Environment variable GYRE_TRIALS: fewer, where everything takes longer.
inline gyre::index trials() {
  const char* const asked = std::getenv("GYRE_TRIALS");
  return asked != nullptr ? std::atoi(asked) : 60;
}

template <class T, gyre::operation Op>
gyre::parity::outcome check_operation(gyre::cuda& right) {
  namespace parity = gyre::parity;
  gyre::reference left;
  const parity::outcome o =
      parity::run_check(parity::check_of<Op, T>(left, right), {.seed = 100, .trials = trials(), .program = "./run gpu"});
  INFO(gyre::operation_names[static_cast<std::size_t>(Op)]);
  INFO(o.failure);
  CHECK(o.passed());
  CHECK(o.worst.excess <= 1);
  CHECK(o.elements > 0);
  return o;
}

template <class T, gyre::operation... Op>
void check_operations() {
  std::optional<gyre::cuda> right = gpu();
  if (!right) return;
  const std::vector<gyre::parity::outcome> all{check_operation<T, Op>(*right)...};
  gyre::parity::write_table(std::cout, all, false);
}

}  // namespace gyre_test
