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

/// Trials of the operations from First to the one before Last; the table goes to standard output.
template <class T, gyre::operation First, gyre::operation Last>
void check_suite() {
  namespace parity = gyre::parity;
  std::optional<gyre::cuda> right = gpu();
  if (!right) return;
  gyre::reference left;
  std::vector<parity::outcome> outcomes;
  for (const parity::check& c : parity::all_checks<T, First, Last>(left, *right)) {
    outcomes.push_back(parity::run_check(c, {.seed = 100, .trials = trials(), .program = "./run gpu"}));
    INFO(outcomes.back().failure);
    CHECK(outcomes.back().passed());
    CHECK(outcomes.back().worst.excess <= 1);
  }
  CHECK(outcomes.size() == static_cast<std::size_t>(Last) - static_cast<std::size_t>(First));  // none is missing
  parity::write_table(std::cout, outcomes, false);
}

}  // namespace gyre_test
