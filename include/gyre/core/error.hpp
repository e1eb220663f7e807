// The library's one exception type. Nothing in gyre aborts, prints or keeps process-wide state.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#include <gyre/config.hpp>

GYRE_BEGIN

/// Everything gyre throws on purpose. The message names the call, the offending numbers, and what to do about them.
/// Memory exhaustion of the host surfaces as std::bad_alloc.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws gyre::error with all arguments written one after the other.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw error(text.str());
}

/// Throws gyre::error made of `parts` unless `condition` holds.
template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) fail(parts...);
}

GYRE_END
