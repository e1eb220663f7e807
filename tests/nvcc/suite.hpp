// Operations of backend `cuda` on a GPU, compared with the reference.
#pragma once

#include <gyre/parity/catch.hpp>

#include <optional>
#include <string>

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

template <class T, gyre::operation Op>
void check_operation(gyre::cuda& right) {
  namespace parity = gyre::parity;
  gyre::reference left;
  const parity::outcome o =
      parity::run_check(parity::check_of<Op, T>(left, right), {.seed = 100, .trials = 60, .program = "./run gpu"});
  INFO(gyre::operation_names[static_cast<std::size_t>(Op)]);
  INFO(o.failure);
  CHECK(o.passed());
  CHECK(o.worst.excess <= 1);
  CHECK(o.elements > 0);
}

template <class T, gyre::operation... Op>
void check_operations() {
  if (std::optional<gyre::cuda> right = gpu()) (check_operation<T, Op>(*right), ...);
}

}  // namespace gyre_test
