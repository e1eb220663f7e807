// Skipping a test with its reason: Catch2 2 has no such thing.
#pragma once

#include <string>

namespace gyre_test {

/// Prints why the running test case is skipped; ctest then counts it as skipped. Leave the case right after:
/// `if (!found) return gyre_test::skip("data/novel.txt is absent");`
void skip(const std::string& reason);

}  // namespace gyre_test
