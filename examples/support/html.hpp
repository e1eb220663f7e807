// Text and numbers as HTML and SVG may hold them.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include <gyre/io/utf8.hpp>

namespace examples {

/// `text` for an element or an attribute in quotes: markup is escaped; invalid UTF-8 and control characters other than tab and
/// newline, which a model of bytes may well speak, become U+FFFD.
inline std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = gyre::utf8_character(text.substr(at));
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    const bool control = length == 1   ? (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F
                         : length == 2 ? byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0
                                       : false;
    if (length == 0 || control) {
      out += "\xEF\xBF\xBD";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(at, length);
    }
    at += (std::max)(length, std::size_t{1});
  }
  return out;
}

/// Characters of valid UTF-8, which is about how wide it is when drawn.
inline std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

namespace detail {

/// What to_chars wrote for a size without sign, thousands set apart and the sign (U+2212) put before.
inline std::string dressed(std::string digits, bool negative) {
  const std::size_t exponent = digits.find('e');
  if (exponent == std::string::npos) {
    const std::size_t whole = (std::min)(digits.find('.'), digits.size());
    for (std::size_t i = whole; i > 3; i -= 3) digits.insert(i - 3, i - 3 > 0 ? "," : "");
  } else {
    while (digits.size() > exponent + 3 && digits[exponent + 2] == '0') digits.erase(exponent + 2, 1);  // 1e-05: 1e-5
    if (digits[exponent + 1] == '+') digits.erase(exponent + 1, 1);
  }
  const bool zero = digits.find_first_not_of("0.") == std::string::npos;
  return negative && !zero ? "\xE2\x88\x92" + digits : digits;
}

inline std::string special(double value) {
  return std::isnan(value) ? "NaN" : value < 0 ? "\xE2\x88\x92\xE2\x88\x9E" : "\xE2\x88\x9E";
}

}  // namespace detail

/// `value` to `digits` significant digits without trailing zeros, digits before the point never cut: 2.45, 694,000, 1e-5, NaN.
/// The same in every locale.
inline std::string number_text(double value, int digits = 4) {
  if (!std::isfinite(value)) return detail::special(value);
  const double size = std::abs(value);
  if (size >= 1 && size < 1e9) digits = (std::max)(digits, static_cast<int>(std::log10(size)) + 1);
  char text[64];
  return detail::dressed({text, std::to_chars(text, text + sizeof text, size, std::chars_format::general, digits).ptr},
                         value < 0);
}

/// `value` with that many digits after the point: 2.40.
inline std::string fixed_text(double value, int decimals) {
  if (!std::isfinite(value)) return detail::special(value);
  char text[400];  // the largest double has 309 digits
  const auto end =
      std::to_chars(text, text + sizeof text, std::abs(value), std::chars_format::fixed, std::clamp(decimals, 0, 40)).ptr;
  return detail::dressed({text, end}, value < 0);
}

}  // namespace examples
