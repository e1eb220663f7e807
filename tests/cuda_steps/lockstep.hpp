// Whole training steps in bf16_mixed, call by call: the reference and the cuda backend's kernels run every call from the same
// operands, and the reference's results are what goes on. So the last call of the last step has the tolerance of its operation alone.
#pragma once

#include <gyre/parity/catch.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include <gyre/backend/cuda.hpp>
#include <gyre/backend/reference.hpp>
#include <gyre/parity/lockstep.hpp>

#include "models.hpp"

namespace gyre_test {

namespace parity = gyre::parity;

/// Names of the operations that were called.
template <class Model>
std::set<std::string> check_in_lockstep(gyre::depth_draw draw, int steps) {
  using P = gyre::bf16_mixed;
  const auto machine = std::make_shared<gyre::simulated_device>(gyre::simt::options{.order = gyre::simt::thread_order::random});
  const parity::lockstep both{gyre::reference(), gyre::simulated_cuda(machine)};
  parity::record_steps<Model, P>(both, make_input<Model, P>(draw, steps), rule_of<Model, P>());
  std::set<std::string> seen;
  double worst = 0;
  for (const parity::report& r : both.reports()) seen.insert(r.subject), worst = (std::max)(worst, r.worst.excess);
  CAPTURE(both.reports().size(), worst);
  if (const parity::report* const failed = both.first_failure()) {
    INFO(*failed);
    CHECK(failed == nullptr);
  }
  CHECK(worst > 0);
  return seen;
}

}  // namespace gyre_test
