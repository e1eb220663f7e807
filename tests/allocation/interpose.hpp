#pragma once

namespace gyre_test {

/// Calls so far, in this program, of functions that take memory.
long allocations();

template <class F>
long allocations_in(F&& f) {
  const long before = allocations();
  f();
  return allocations() - before;
}

}  // namespace gyre_test
