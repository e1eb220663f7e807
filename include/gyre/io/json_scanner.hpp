// A strict pull reader of JSON (RFC 8259): the caller says what it expects next, and memory is the caller's alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <gyre/core/error.hpp>
#include <gyre/io/utf8.hpp>

GYRE_BEGIN

/// What a JSON text may ask for. A text beyond a bound is refused with an error that names the bound.
struct json_limits {
  std::size_t bytes = std::size_t{64} << 20;  ///< length of the text
  int depth = 64;                             ///< arrays and objects inside one another
  std::size_t values = std::size_t{1} << 22;  ///< values that parse_json() keeps, about 100 bytes each
};

enum class json_kind : unsigned char { null, boolean, number, string, array, object };

/// "a number", "an object" and so on, for messages.
constexpr std::string_view describe(json_kind kind) {
  constexpr std::array<std::string_view, 6> names{"null", "true or false", "a number", "a string", "an array", "an object"};
  return names[static_cast<std::size_t>(kind)];
}

/// Reads one JSON text from left to right. Every error is a gyre::error that names the source, the byte offset, what was
/// expected and what was found there. Text and source must outlive the scanner.
class json_scanner {
 public:
  /// `base` is the offset of the text within its file, added to the offsets of messages.
  json_scanner(std::string_view text, std::string_view source, const json_limits& limits = {}, std::size_t base = 0)
      : text_(text), source_(source), limits_(limits), base_(base) {
    require(text.size() <= limits.bytes, source, ": a JSON text of ", text.size(), " bytes is longer than the limit of ",
            limits.bytes);
  }

  /// Offset in the file of the next unread byte.
  std::size_t offset() const { return base_ + at_; }

  /// The kind of the value that begins next.
  json_kind peek() {
    skip_space();
    const char next = at_ < text_.size() ? text_[at_] : '\0';
    switch (next) {
      case '{':
        return json_kind::object;
      case '[':
        return json_kind::array;
      case '"':
        return json_kind::string;
      case 't':
      case 'f':
        return json_kind::boolean;
      case 'n':
        return json_kind::null;
      default:
        if (next == '-' || digit(next)) return json_kind::number;
        expected("a value");
    }
  }

  /// An object: open_object(), then one value after each next_member() that returns true.
  void open_object() { open('{', json_kind::object); }
  /// Moves past the comma and reads the next member's key and colon; false, past the brace, at the object's end.
  bool next_member(std::string& key) {
    if (!next('}')) return false;
    skip_space();
    if (at_ == text_.size() || text_[at_] != '"') expected("a key in quotes");
    string(key);
    skip_space();
    if (!take(':')) expected("':'");
    return true;
  }

  /// An array: open_array(), then one value after each next_element() that returns true.
  void open_array() { open('[', json_kind::array); }
  bool next_element() { return next(']'); }

  void null() {
    want(json_kind::null);
    literal("null");
  }

  bool boolean() {
    want(json_kind::boolean);
    const bool value = text_[at_] == 't';
    literal(value ? "true" : "false");
    return value;
  }

  /// The number as it stands in the text: -?int frac? exp?
  std::string_view number() {
    want(json_kind::number);
    const std::size_t begin = at_;
    take('-');
    if (!take('0')) digits("a digit");
    if (take('.')) digits("a digit after the point");
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      digits("a digit of the exponent");
    }
    return text_.substr(begin, at_ - begin);
  }

  /// A string, its escapes resolved: valid UTF-8.
  void string(std::string& out) {
    want(json_kind::string);
    out.clear();
    ++at_;
    while (true) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && plain(text_[at_])) ++at_;
      out.append(text_, begin, at_ - begin);
      if (at_ == text_.size()) expected("the string's closing quote");
      const char next = text_[at_];
      if (next == '"') break;
      if (next == '\\') {
        escape(out);
      } else {
        const std::size_t length = utf8_character(text_.substr(at_));
        if (length < 2) expected("valid UTF-8, control characters escaped");
        out.append(text_, at_, length);
        at_ += length;
      }
    }
    ++at_;
  }

  /// Nothing but white space may follow.
  void finish() {
    skip_space();
    if (at_ != text_.size()) expected("nothing after the value");
  }

  /// Throws "<source>: byte <offset>: expected <what>, found <the next character>".
  [[noreturn]] void expected(std::string_view what) const {
    fail(source_, ": byte ", offset(), ": expected ", what, ", found ", found());
  }

 private:
  static bool digit(char c) { return c >= '0' && c <= '9'; }
  static bool plain(char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x80 && c != '"' && c != '\\';
  }

  std::string found() const {
    if (at_ >= text_.size()) return "the end of the text";
    return detail::in_quotes(text_.substr(at_, 1));
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) ++at_;
  }

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void want(json_kind kind) {
    if (peek() != kind) expected(describe(kind));
  }

  void literal(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) expected(word);
    at_ += word.size();
  }

  void digits(std::string_view what) {
    if (at_ == text_.size() || !digit(text_[at_])) expected(what);
    while (at_ < text_.size() && digit(text_[at_])) ++at_;
  }

  void open(char bracket, json_kind kind) {
    want(kind);
    require(depth_ < limits_.depth, source_, ": byte ", offset(), ": arrays and objects are nested deeper than the limit of ",
            limits_.depth);
    take(bracket);
    ++depth_;
    first_ = true;
  }

  /// Steps to the next element of the innermost open container; false when it closes. One flag serves all depths: a
  /// container in which another has just closed is past its first element.
  bool next(char closing) {
    skip_space();
    const bool first = first_;
    first_ = false;
    if (take(closing)) {
      --depth_;
      return false;
    }
    if (first) return true;
    if (!take(',')) expected(closing == '}' ? "',' or '}'" : "',' or ']'");
    return true;
  }

  /// Four hexadecimal digits.
  std::uint32_t hexadecimal() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      std::uint32_t nibble = 0;
      if (digit(c))
        nibble = static_cast<std::uint32_t>(c - '0');
      else if (c >= 'a' && c <= 'f')
        nibble = static_cast<std::uint32_t>(c - 'a') + 10;
      else if (c >= 'A' && c <= 'F')
        nibble = static_cast<std::uint32_t>(c - 'A') + 10;
      else
        expected("four hexadecimal digits after \\u");
      value = value * 16 + nibble;
    }
    return value;
  }

  /// At a backslash.
  void escape(std::string& out) {
    ++at_;
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    constexpr std::string_view written = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    if (const std::size_t which = written.find(c); which != std::string_view::npos) {
      out += meant[which];
      ++at_;
      return;
    }
    if (c != 'u') expected("one of \" \\ / b f n r t u after the backslash");
    ++at_;
    std::uint32_t point = hexadecimal();
    if (point >= 0xDC00 && point <= 0xDFFF) fail_surrogate("no high surrogate before it");
    if (point >= 0xD800 && point <= 0xDBFF) {
      if (text_.substr(at_, 2) != "\\u") fail_surrogate("no low surrogate after it");
      at_ += 2;
      const std::uint32_t low = hexadecimal();
      if (low < 0xDC00 || low > 0xDFFF) fail_surrogate("no low surrogate after it");
      point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    }
    detail::append_utf8(out, point);
  }

  [[noreturn]] void fail_surrogate(std::string_view why) const {
    fail(source_, ": byte ", offset(), ": expected a Unicode character, found a surrogate escape with ", why);
  }

  std::string_view text_, source_;
  json_limits limits_;
  std::size_t base_ = 0, at_ = 0;
  int depth_ = 0;
  bool first_ = false;
};

GYRE_END
