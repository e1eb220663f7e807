// Faults to be found: kernels that are right but for one thing.
#pragma once

#include <gyre/backend/reference.hpp>
#include <gyre/parity/suite.hpp>
#include <gyre/parity/wrapped.hpp>

namespace gyre_test {

namespace parity = gyre::parity;
using gyre::index, gyre::matrix_view, gyre::operation, gyre::reference;
using parity::fault, parity::side;

/// The trials of one operation with a planted kernel on the right side, in float.
template <operation Op, class Kernel>
parity::outcome examine(Kernel kernel, index trials = 24) {
  reference left;
  auto right = parity::replace<Op>(reference(), kernel);
  return parity::run_check(parity::check_of<Op, float>(left, right), {.trials = trials});
}

/// Whether some finding of the right side is of this kind; the left one must have none.
inline bool shows(const parity::report& r, fault what) {
  bool found = false;
  for (const parity::finding& f : r.findings) {
    if (f.whose != side::right) return false;
    found = found || f.what == what;
  }
  return found;
}

}  // namespace gyre_test
