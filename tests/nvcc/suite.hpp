// Operations of backend `cuda` on a GPU, compared with the reference: g++'s half.
#pragma once

#include <gyre/parity/catch.hpp>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/parity/suite.hpp>

#include "nvcc/gpu_calls.hpp"
#include "nvcc/on_gpu.hpp"

namespace gyre_test {

/// Environment variable GYRE_TRIALS: fewer, where everything takes longer.
inline gyre::index trials() {
  const char* const asked = std::getenv("GYRE_TRIALS");
  return asked != nullptr ? std::atoi(asked) : 60;
}

/// Trials of all operations that T has; the table goes to standard output.
template <class T>
void check_suite() {
  namespace parity = gyre::parity;
  std::optional<gpu_calls> right = on_gpu<gpu_calls>();
  if (!right) return;
  gyre::reference left;
  std::vector<parity::outcome> outcomes;
  for (const parity::check& c : parity::all_checks<T>(left, *right)) {
    outcomes.push_back(parity::run_check(c, {.seed = 100, .trials = trials(), .program = "./run gpu"}));
    INFO(outcomes.back().failure);
    CHECK(outcomes.back().passed());
    CHECK(outcomes.back().worst.excess <= 1);
  }
  CHECK(outcomes.size() == static_cast<std::size_t>(sizeof(T) == 2 ? gyre::operation::squared_norm : gyre::operation::count));
  parity::write_table(std::cout, outcomes, false);
}

}  // namespace gyre_test
