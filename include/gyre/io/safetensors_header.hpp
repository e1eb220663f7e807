// The header of a safetensors file: parsed and checked completely before any of its numbers is used.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gyre/core/types.hpp>
#include <gyre/io/dtype.hpp>
#include <gyre/io/json_scanner.hpp>

GYRE_BEGIN

/// A tensor in a file: row-major elements at bytes [begin, end) of the data that follow the header.
struct stored_tensor {
  std::string name;
  dtype type = dtype::f32;
  std::vector<index> shape;  // empty: one element
  std::uint64_t begin = 0, end = 0;

  /// Elements; 0 when a dimension is 0.
  index count() const { return std::accumulate(shape.begin(), shape.end(), index{1}, std::multiplies<>()); }
};

/// What the header says. Tensors stand in the order of their data, metadata in the order of its keys.
struct safetensors_header {
  std::vector<stored_tensor> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
};

namespace detail {

inline constexpr std::uint64_t safetensors_most_header = 100'000'000;  // bytes, as the official package has it
inline constexpr std::string_view safetensors_metadata_key = "__metadata__";

/// "F32 [2, 3]", at most eight dimensions of it.
inline std::string shape_text(dtype type, std::span<const index> shape) {
  std::string out(name_of(type));
  out += " [";
  for (std::size_t i = 0; i < shape.size() && i < 8; ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(shape[i]);
  }
  if (shape.size() > 8) out.append(", ... ").append(std::to_string(shape.size())).append(" dimensions");
  return out + "]";
}

/// Bytes that a tensor takes. Throws when a dimension is negative, when the product exceeds 63 bits (also where a later
/// dimension is 0, as the official package does) or when packed elements do not fill whole bytes.
inline std::uint64_t checked_bytes(dtype type, std::span<const index> shape, std::string_view source, std::string_view name) {
  constexpr std::uint64_t most = (std::numeric_limits<index>::max)();
  const auto wrong = [&](std::string_view what) {
    fail(source, ": tensor ", in_quotes(name), ": ", shape_text(type, shape), " ", what);
  };
  std::uint64_t bits = 1;
  const auto multiply = [&](std::uint64_t factor) {
    if (factor != 0 && bits > most / factor) wrong("takes more bits than a 63-bit number can count");
    bits *= factor;
  };
  for (const index dimension : shape) {
    if (dimension < 0) wrong("has a negative dimension");
    multiply(static_cast<std::uint64_t>(dimension));
  }
  multiply(static_cast<std::uint64_t>(bits_of(type)));
  if (bits % 8 != 0) wrong("does not fill whole bytes");
  return bits / 8;
}

/// Reads the header's JSON by its schema: nothing is kept but tensors and metadata, so memory stays within a few times the
/// header, whatever it holds.
class safetensors_parser {
 public:
  safetensors_parser(std::string_view text, std::uint64_t data_bytes, std::string_view source)
      : scan_(text, source, {.bytes = safetensors_most_header}, sizeof(std::uint64_t)),
        source_(source),
        data_bytes_(data_bytes) {
    require(!text.empty() && text.front() == '{', source, ": byte 8: the header must begin with '{'");
  }

  safetensors_header whole() {
    bool has_metadata = false;
    scan_.open_object();
    for (std::string key; scan_.next_member(key);) {
      if (key != safetensors_metadata_key) {
        tensor(std::move(key));
        continue;
      }
      require(!has_metadata, where(), "duplicate key '__metadata__'");
      has_metadata = true;
      metadata();
    }
    scan_.finish();
    sort_unique(out_.metadata, [](const auto& entry) -> const std::string& { return entry.first; });
    // By name first, to find duplicates; then by place, to find overlaps and holes.
    sort_unique(out_.tensors, [](const stored_tensor& t) -> const std::string& { return t.name; });
    std::stable_sort(out_.tensors.begin(), out_.tensors.end(), [](const stored_tensor& a, const stored_tensor& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    check_places();
    return std::move(out_);
  }

 private:
  // Messages are made only where they are needed: `if (wrong) fail(...)` instead of require().
  std::string where() const { return std::string(source_) + ": byte " + std::to_string(scan_.offset()) + ": "; }

  /// The null byte ends names in C: readers would disagree about such a name. The official package refuses it, too.
  void no_null(const std::string& text) const {
    if (text.find('\0') != std::string::npos) fail(where(), "the text ", in_quotes(text), " holds a null byte");
  }

  void metadata() {
    scan_.open_object();
    std::string key, value;
    while (scan_.next_member(key)) {
      scan_.string(value);
      no_null(key);
      no_null(value);
      out_.metadata.emplace_back(key, value);
    }
  }

  /// A size or an offset: digits only, at most 63 bits.
  std::uint64_t size() {
    constexpr auto most = static_cast<std::uint64_t>((std::numeric_limits<index>::max)());
    const std::string_view digits = scan_.number();
    std::uint64_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status != std::errc() || end != digits.data() + digits.size() || value > most)
      fail(source_, ": byte ", scan_.offset() - digits.size(), ": expected an integer from 0 to ", most, ", found ",
           digits.substr(0, 40));
    return value;
  }

  void tensor(std::string name) {
    no_null(name);
    stored_tensor t;
    t.name = std::move(name);
    bool has_type = false, has_shape = false, has_place = false;
    const auto once = [&](bool& seen, std::string_view field) {
      if (seen) fail(where(), "duplicate key '", field, "' of tensor ", in_quotes(t.name));
      seen = true;
    };
    scan_.open_object();
    for (std::string field; scan_.next_member(field);) {
      if (field == "dtype") {
        once(has_type, field);
        t.type = element_type(t);
      } else if (field == "shape") {
        once(has_shape, field);
        scan_.open_array();
        while (scan_.next_element()) t.shape.push_back(static_cast<index>(size()));
      } else if (field == "data_offsets") {
        once(has_place, field);
        place(t);
      } else {
        fail(where(), "tensor ", in_quotes(t.name), " has the unknown field ", in_quotes(field));
      }
    }
    const std::string_view missing = !has_type ? "dtype" : !has_shape ? "shape" : !has_place ? "data_offsets" : "";
    if (!missing.empty()) fail(where(), "tensor ", in_quotes(t.name), " has no ", missing);
    out_.tensors.push_back(std::move(t));
  }

  dtype element_type(const stored_tensor& t) {
    std::string name;
    scan_.string(name);
    const std::optional<dtype> known = dtype_named(name);
    if (!known) fail(where(), "tensor ", in_quotes(t.name), " has the unknown dtype ", in_quotes(name));
    return *known;
  }

  void place(stored_tensor& t) {
    scan_.open_array();
    const auto element = [&](bool wanted) {
      if (scan_.next_element() != wanted) fail(where(), "data_offsets of tensor ", in_quotes(t.name), " must be two numbers");
    };
    element(true);
    t.begin = size();
    element(true);
    t.end = size();
    element(false);
  }

  template <class Entry, class Key>
  void sort_unique(std::vector<Entry>& entries, Key key) const {
    std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) { return key(a) < key(b); });
    for (std::size_t i = 1; i < entries.size(); ++i)
      if (key(entries[i - 1]) == key(entries[i])) fail(source_, ": duplicate key ", in_quotes(key(entries[i])));
  }

  /// The tensors must tile the data: each as long as its type and shape say, no overlap, no hole, nothing before or after.
  void check_places() const {
    std::uint64_t reached = 0;
    for (const stored_tensor& t : out_.tensors) {
      const auto wrong = [&](const auto&... parts) {
        fail(source_, ": tensor ", in_quotes(t.name), ": data_offsets [", t.begin, ", ", t.end, "] ", parts...);
      };
      if (t.begin > t.end) wrong("end before they begin");
      const std::uint64_t bytes = checked_bytes(t.type, t.shape, source_, t.name);
      if (t.end - t.begin != bytes) wrong("give ", t.end - t.begin, " bytes, ", shape_text(t.type, t.shape), " takes ", bytes);
      if (t.begin < reached) wrong("overlap with the tensor before, which ends at ", reached);
      if (t.begin > reached) wrong("leave a hole after byte ", reached);
      if (t.end > data_bytes_) wrong("reach beyond the data of ", data_bytes_, " bytes; the file is truncated");
      reached = t.end;
    }
    require(reached == data_bytes_, source_, ": ", data_bytes_ - reached, " trailing bytes belong to no tensor");
  }

  json_scanner scan_;
  std::string_view source_;
  std::uint64_t data_bytes_;
  safetensors_header out_;
};

}  // namespace detail

/// Length in bytes of the header that follows a file's first 8 bytes, checked against the bound of the format and against the
/// file's size. `source` names the file in errors.
inline std::uint64_t safetensors_header_bytes(std::span<const std::byte> first, std::uint64_t file_bytes,
                                              std::string_view source) {
  require(first.size() >= 8, source, ": ", file_bytes,
          " bytes are too few for a safetensors file, which begins with a header size of 8");
  std::uint64_t bytes = 0;
  for (int i = 7; i >= 0; --i) bytes = bytes << 8 | std::to_integer<std::uint64_t>(first[static_cast<std::size_t>(i)]);
  require(bytes >= 2, source, ": a header of ", bytes, " bytes is too small, '{}' is the least");
  require(bytes <= detail::safetensors_most_header, source, ": a header of ", bytes,
          " bytes is larger than the format's limit of ", detail::safetensors_most_header);
  require(bytes <= file_bytes - 8, source, ": a header of ", bytes, " bytes does not fit in a file of ", file_bytes,
          "; the file is truncated or no safetensors file");
  return bytes;
}

/// Reads the header `text` of a file whose data take `data_bytes`, and checks it by every rule of the format.
inline safetensors_header parse_safetensors_header(std::string_view text, std::uint64_t data_bytes, std::string_view source) {
  return detail::safetensors_parser(text, data_bytes, source).whole();
}

GYRE_END
