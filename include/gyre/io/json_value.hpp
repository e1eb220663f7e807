// JSON as a value: numbers keep their exact text, objects the order of their members.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <gyre/io/json_scanner.hpp>

GYRE_BEGIN

namespace detail {
class json_builder;
}

/// One JSON value. Numbers are kept as text, so that 64-bit integers and doubles come back exactly as they were written.
/// Reading a value as what it is not throws gyre::error that begins with `where` (a file and a field, see json_field).
class json {
 public:
  json() = default;  ///< null
  json(std::nullptr_t) {}
  template <class T>
  requires std::same_as<T, bool> json(T value) : kind_(json_kind::boolean), text_(value ? "true" : "false") {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) json(T value) : kind_(json_kind::number), text_(std::to_string(value)) {}
  /// The shortest text that reads back as the same double. JSON has no text for infinities and NaN: they throw.
  template <std::floating_point T>
  requires(sizeof(T) <= sizeof(double)) json(T value) : kind_(json_kind::number), text_(shortest(static_cast<double>(value))) {}
  json(std::string value) : kind_(json_kind::string), text_(std::move(value)) {}
  json(std::string_view value) : kind_(json_kind::string), text_(value) {}
  json(const char* value) : kind_(json_kind::string), text_(value) {}

  static json array(std::vector<json> elements = {}) {
    json out;
    out.kind_ = json_kind::array;
    out.values_ = std::move(elements);
    return out;
  }
  static json object() {
    json out;
    out.kind_ = json_kind::object;
    return out;
  }
  /// A number by its text, which is kept: throws unless it is a JSON number.
  static json number(std::string_view text) {
    json_scanner scan(text, "json::number");
    json out;
    out.kind_ = json_kind::number;
    out.text_ = scan.number();
    scan.finish();
    return out;
  }

  json_kind kind() const { return kind_; }
  bool operator==(const json&) const = default;  ///< numbers compare as text

  bool boolean(std::string_view where = "json") const {
    want(json_kind::boolean, where);
    return text_.size() == 4;
  }
  const std::string& string(std::string_view where = "json") const {
    want(json_kind::string, where);
    return text_;
  }
  const std::string& number_text(std::string_view where = "json") const {
    want(json_kind::number, where);
    return text_;
  }
  std::int64_t int64(std::string_view where = "json") const { return integer<std::int64_t>(where); }
  std::uint64_t uint64(std::string_view where = "json") const { return integer<std::uint64_t>(where); }
  /// The nearest double; throws where the number is too large for one, or so small that it would become 0.
  double real(std::string_view where = "json") const {
    want(json_kind::number, where);
    double value = 0;
    const auto [end, status] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    require(status == std::errc() && end == text_.data() + text_.size() && std::isfinite(value), where, ": the number ",
            text_.substr(0, 40), " is outside the range of a double");
    return value;
  }

  /// Elements of an array or values of an object, in order.
  const std::vector<json>& values(std::string_view where = "json") const {
    require(kind_ == json_kind::array || kind_ == json_kind::object, where, ": expected an array or an object, found ",
            describe(kind_));
    return values_;
  }
  /// Keys of an object, in the order of values().
  const std::vector<std::string>& keys(std::string_view where = "json") const {
    want(json_kind::object, where);
    return keys_;
  }
  /// The member of that name, or null when there is none; linear in the number of members.
  const json* find(std::string_view key, std::string_view where = "json") const {
    want(json_kind::object, where);
    for (std::size_t i = 0; i < keys_.size(); ++i)
      if (keys_[i] == key) return &values_[i];
    return nullptr;
  }

  /// Appends to an array.
  void push_back(json value) {
    want(json_kind::array, "json::push_back");
    values_.push_back(std::move(value));
  }
  /// Sets a member of an object; a new one is appended.
  void set(std::string key, json value) {
    want(json_kind::object, "json::set");
    for (std::size_t i = 0; i < keys_.size(); ++i)
      if (keys_[i] == key) {
        values_[i] = std::move(value);
        return;
      }
    keys_.push_back(std::move(key));
    values_.push_back(std::move(value));
  }

 private:
  friend class detail::json_builder;

  void want(json_kind kind, std::string_view where) const {
    require(kind_ == kind, where, ": expected ", describe(kind), ", found ", describe(kind_));
  }

  template <class T>
  T integer(std::string_view where) const {
    want(json_kind::number, where);
    T value = 0;
    const auto [end, status] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    require(status == std::errc() && end == text_.data() + text_.size(), where, ": expected an integer from ",
            (std::numeric_limits<T>::min)(), " to ", (std::numeric_limits<T>::max)(), ", found ", text_.substr(0, 40));
    return value;
  }

  static std::string shortest(double value) {
    require(std::isfinite(value), "json: ", value, " is not finite, and JSON has no text for it");
    char buffer[32];
    const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
    std::string text(buffer, result.ptr);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";  // other readers then also take it for a real number
    return text;
  }

  json_kind kind_ = json_kind::null;
  std::string text_;  // a string's characters, a number's text, true or false
  std::vector<json> values_;
  std::vector<std::string> keys_;
};

GYRE_END
