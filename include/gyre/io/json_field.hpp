// Reading a configuration: values that know the way to themselves, for messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <gyre/io/json_value.hpp>

GYRE_BEGIN

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
    if (member == nullptr) fail(where(), ": the member ", detail::in_quotes(key), " is missing");
    return {*member, source_, path_.empty() ? std::string(key) : path_ + "." + std::string(key)};
  }
  /// The element at that position; throws when the array is shorter.
  json_field operator[](std::size_t at) const {
    if (value_->kind() != json_kind::array) fail(where(), ": expected an array, found ", describe(value_->kind()));
    if (at >= size()) fail(where(), ": element ", at, " of an array of ", size());
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
