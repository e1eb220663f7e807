// UTF-8, as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <gyre/config.hpp>

GYRE_BEGIN

/// Length in bytes (1 to 4) of the valid UTF-8 character that `text` begins with; 0 when it begins with none (also when empty).
constexpr std::size_t utf8_character(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(text[at])); };
  const auto continues = [&](std::size_t at) { return at < text.size() && (byte(at) & 0xC0u) == 0x80u; };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80u) return 1;
  if (lead < 0xC2u || lead > 0xF4u) return 0;  // a stray continuation, an overlong pair, or beyond U+10FFFF
  if (!continues(1)) return 0;
  if (lead < 0xE0u) return 2;
  if (!continues(2)) return 0;
  if (lead < 0xF0u) {
    const bool overlong = lead == 0xE0u && byte(1) < 0xA0u;
    const bool surrogate = lead == 0xEDu && byte(1) > 0x9Fu;
    return overlong || surrogate ? 0 : 3;
  }
  if (!continues(3)) return 0;
  const bool overlong = lead == 0xF0u && byte(1) < 0x90u;
  const bool beyond = lead == 0xF4u && byte(1) > 0x8Fu;
  return overlong || beyond ? 0 : 4;
}

/// Offset of the first byte of `text` that begins no valid character; text.size() when all of it is valid.
constexpr std::size_t utf8_valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const bool plain = static_cast<unsigned char>(text[at]) < 0x80;  // nearly all of most texts
    const std::size_t length = plain ? 1 : utf8_character(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

namespace detail {

/// Appends a code point, which is a Unicode scalar value (at most U+10FFFF and no surrogate).
inline void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0u | (point >> 6));
    put(0x80u | (point & 0x3Fu));
  } else if (point < 0x10000) {
    put(0xE0u | (point >> 12));
    put(0x80u | ((point >> 6) & 0x3Fu));
    put(0x80u | (point & 0x3Fu));
  } else {
    put(0xF0u | (point >> 18));
    put(0x80u | ((point >> 12) & 0x3Fu));
    put(0x80u | ((point >> 6) & 0x3Fu));
    put(0x80u | (point & 0x3Fu));
  }
}

/// A name from a file as an error message may show it: in quotes, at most 80 bytes, with everything but printable ASCII and
/// valid UTF-8 as \xNN, so that a hostile name can neither flood nor steer a terminal.
inline std::string in_quotes(std::string_view name) {
  constexpr std::size_t most = 80;
  constexpr char hex[] = "0123456789abcdef";
  std::string out = "'";
  std::size_t at = 0;
  while (at < name.size() && at < most) {
    const std::size_t length = utf8_character(name.substr(at));
    const auto byte = static_cast<unsigned char>(name[at]);
    // U+0080 to U+009F are control characters too; their lead byte is 0xC2.
    const bool control =
        length < 2 ? byte < 0x20 || byte >= 0x7F : byte == 0xC2 && static_cast<unsigned char>(name[at + 1]) < 0xA0;
    if (length == 0 || control) {
      out += "\\x";
      out += hex[byte >> 4];
      out += hex[byte & 15];
      at += 1;
    } else {
      out += name.substr(at, length);
      at += length;
    }
  }
  out += at < name.size() ? "...'" : "'";
  return out;
}

}  // namespace detail

GYRE_END
