// JSON text into values: what the grammar does not allow is refused, and so are duplicate keys.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gyre/io/json_scanner.hpp>
#include <gyre/io/json_value.hpp>

GYRE_BEGIN

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
      if (out.keys_[order[i - 1]] == out.keys_[order[i]])
        fail(source_, ": byte ", offsets[order[i]], ": duplicate key ", detail::in_quotes(out.keys_[order[i]]));
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

GYRE_END
