// JSON text out of values: the same value gives the same bytes everywhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <gyre/io/json_value.hpp>

GYRE_BEGIN

namespace detail {

/// Appends `text` in quotes: only what must be escaped is. Throws, naming `what`, unless `text` is valid UTF-8.
inline void append_json_string(std::string& out, std::string_view text, std::string_view what) {
  const std::size_t valid = utf8_valid_prefix(text);
  if (valid != text.size()) fail(what, ": the text ", in_quotes(text), " is not valid UTF-8 at byte ", valid);
  constexpr std::string_view meant = "\"\\\b\f\n\r\t", written = "\"\\bfnrt";
  constexpr char hex[] = "0123456789abcdef";
  out += '"';
  std::size_t kept = 0;  // bytes of the text that are in `out`
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out += text.substr(kept, at - kept);
    kept = at + 1;
    out += '\\';
    if (const std::size_t which = meant.find(text[at]); which != std::string_view::npos) {
      out += written[which];
    } else {
      out += "u00";
      out += hex[byte >> 4];
      out += hex[byte & 15];
    }
  }
  out += text.substr(kept);
  out += '"';
}

inline void append_json(std::string& out, const json& value, int indent, int level) {
  const auto line = [&](int at) {
    if (indent == 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(at), ' ');
  };
  switch (value.kind()) {
    case json_kind::null:
      out += "null";
      return;
    case json_kind::boolean:
      out += value.boolean() ? "true" : "false";
      return;
    case json_kind::number:
      out += value.number_text();
      return;
    case json_kind::string:
      append_json_string(out, value.string(), "write_json");
      return;
    case json_kind::array:
    case json_kind::object:
      break;
  }
  const bool object = value.kind() == json_kind::object;
  out += object ? '{' : '[';
  for (std::size_t i = 0; i < value.values().size(); ++i) {
    if (i > 0) out += ',';
    line(level + 1);
    if (object) {
      append_json_string(out, value.keys()[i], "write_json");
      out += indent == 0 ? ":" : ": ";
    }
    append_json(out, value.values()[i], indent, level + 1);
  }
  if (!value.values().empty()) line(level);
  out += object ? '}' : ']';
}

}  // namespace detail

/// The text of a value: members in their order, on one line without spaces, or, with `indent` > 0, a line for each value.
/// parse_json() of it gives an equal value. Throws when a string is not valid UTF-8.
inline std::string write_json(const json& value, int indent = 0) {
  std::string out;
  detail::append_json(out, value, indent, 0);
  return out;
}

GYRE_END
