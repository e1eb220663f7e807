#pragma once

namespace gyre_test {

/// Whether a sanitizer watches, which makes everything take many times as long: a race or a wrong address shows early or never.
#ifdef GYRE_TEST_SANITIZED  // by CMakeLists.txt
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace gyre_test
