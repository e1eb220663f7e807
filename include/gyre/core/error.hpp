// The library's one exception type. Nothing in gyre aborts, prints or keeps process-wide state.
#pragma once

#include <cstddef>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <gyre/config.hpp>

GYRE_BEGIN

/// Everything gyre throws on purpose. The message names the call, the offending numbers, and what to do about them.
/// Memory exhaustion of the host surfaces as std::bad_alloc.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

// A piece of a message, printed by a function of its type alone: a message is composed once, not in every combination of types.
struct message_part {
  const void* value;
  void (*print)(std::ostream&, const void*);
};
template <class T>
void print_part(std::ostream& out, const void* value) {
  out << *static_cast<const T*>(value);
}
inline void print_text(std::ostream& out, const void* value) { out << static_cast<const char*>(value); }

template <class T>
constexpr message_part part_of(const T& x) {
  if constexpr (std::is_array_v<T>)
    return {x, print_text};
  else
    return {std::addressof(x), print_part<T>};
}
[[noreturn]] GYRE_COLD inline void fail_with(const message_part* parts, std::size_t count) {
  std::ostringstream text;
  for (std::size_t i = 0; i < count; ++i) parts[i].print(text, parts[i].value);
  throw error(text.str());
}

}  // namespace detail

/// Throws gyre::error with all arguments written one after the other.
template <class... Parts>
[[noreturn]] GYRE_COLD void fail(const Parts&... parts) {
  const detail::message_part all[] = {detail::part_of(parts)...};
  detail::fail_with(all, sizeof...(Parts));
}

/// Throws gyre::error made of `parts` unless `condition` holds.
template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) fail(parts...);
}

GYRE_END
