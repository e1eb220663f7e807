// JSON as a value: numbers keep their exact text, objects the order of their members.
#pragma once

#include <algorithm>
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

namespace detail {

/// Makes values out of text; see parse_json().
class json_builder {
 public:
  json_builder(std::string_view text, std::string_view source, const json_limits& limits)
      : scan_(text, source, limits), source_(source), left_(limits.values), most_(limits.values) {}

  json whole() {
    json out = value();
    scan_.finish();
    return out;
  }

 private:
  json value() {
    const json_kind kind = scan_.peek();
    require(left_ > 0, source_, ": byte ", scan_.offset(), ": more values than the limit of ", most_);
    --left_;
    json out;
    out.kind_ = kind;
    switch (kind) {
      case json_kind::null:
        scan_.null();
        break;
      case json_kind::boolean:
        out.text_ = scan_.boolean() ? "true" : "false";
        break;
      case json_kind::number:
        out.text_ = scan_.number();
        break;
      case json_kind::string:
        scan_.string(out.text_);
        break;
      case json_kind::array:
        scan_.open_array();
        while (scan_.next_element()) out.values_.push_back(value());
        break;
      case json_kind::object:
        members(out);
        break;
    }
    return out;
  }

  void members(json& out) {
    std::vector<std::size_t> offsets, order;  // of the byte after each key, for the message
    scan_.open_object();
    for (std::string key; scan_.next_member(key);) {
      order.push_back(offsets.size());
      offsets.push_back(scan_.offset());
      out.keys_.push_back(std::move(key));
      out.values_.push_back(value());
    }
    // Sorting finds duplicates in n log n whatever the keys are; hashing could be attacked.
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const int sign = out.keys_[a].compare(out.keys_[b]);
      return sign != 0 ? sign < 0 : a < b;
    });
    for (std::size_t i = 1; i < order.size(); ++i)
      require(out.keys_[order[i - 1]] != out.keys_[order[i]], source_, ": byte ", offsets[order[i]], ": duplicate key ",
              detail::in_quotes(out.keys_[order[i]]));
  }

  json_scanner scan_;
  std::string_view source_;
  std::size_t left_, most_;
};

}  // namespace detail

/// Reads one JSON text (RFC 8259). `source` names it in errors. Refused besides what the grammar refuses: duplicate keys,
/// invalid UTF-8, escapes that make no Unicode character, a byte order mark, and whatever exceeds the limits.
inline json parse_json(std::string_view text, std::string_view source, const json_limits& limits = {}) {
  return detail::json_builder(text, source, limits).whole();
}

/// A value and the way to it: "config.json: model.width". Wrong types and missing members are reported with that way.
/// The value must outlive the field.
class json_field {
 public:
  json_field(const json& value, std::string source) : value_(&value), source_(std::move(source)) {}

  const json& value() const { return *value_; }
  std::string where() const { return path_.empty() ? source_ : source_ + ": " + path_; }

  bool contains(std::string_view key) const { return value_->find(key, where()) != nullptr; }
  /// The member of that name; throws when there is none.
  json_field operator[](std::string_view key) const {
    const json* member = value_->find(key, where());
    require(member != nullptr, where(), ": the member ", detail::in_quotes(key), " is missing");
    return {*member, source_, path_.empty() ? std::string(key) : path_ + "." + std::string(key)};
  }
  /// The element at that position; throws when the array is shorter.
  json_field operator[](std::size_t at) const {
    require(value_->kind() == json_kind::array, where(), ": expected an array, found ", describe(value_->kind()));
    require(at < size(), where(), ": element ", at, " of an array of ", size());
    return {value_->values()[at], source_, path_ + "[" + std::to_string(at) + "]"};
  }
  std::size_t size() const { return value_->values(where()).size(); }

  bool boolean() const { return value_->boolean(where()); }
  const std::string& string() const { return value_->string(where()); }
  std::int64_t int64() const { return value_->int64(where()); }
  std::uint64_t uint64() const { return value_->uint64(where()); }
  double real() const { return value_->real(where()); }

 private:
  json_field(const json& value, std::string source, std::string path)
      : value_(&value), source_(std::move(source)), path_(std::move(path)) {}

  const json* value_;
  std::string source_, path_;
};

GYRE_END
