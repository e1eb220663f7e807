#pragma once

namespace gyre_test {
/// Calls so far, in this program, of functions that take memory.
long allocations();
}  // namespace gyre_test
