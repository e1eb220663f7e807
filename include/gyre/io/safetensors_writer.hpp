// Writing safetensors files: byte for byte what the official package writes for the same tensors and metadata.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gyre/io/json_writer.hpp>
#include <gyre/io/safetensors_header.hpp>

GYRE_BEGIN

/// A tensor to be written: row-major elements in memory, which stay the caller's.
struct tensor_source {
  std::string name;
  dtype type = dtype::f32;
  std::vector<index> shape;  // empty: one element
  const void* data = nullptr;

  tensor_source(std::string name_, dtype type_, std::vector<index> shape_, const void* data_)
      : name(std::move(name_)), type(type_), shape(std::move(shape_)), data(data_) {}
  template <class T>
  requires requires { dtype_of<T>(); }
  tensor_source(std::string name_, std::vector<index> shape_, const T* data_)
      : tensor_source(std::move(name_), dtype_of<T>(), std::move(shape_), data_) {}
};

/// What takes bytes in order: file_writer, or anything else with such a member.
template <class S>
concept byte_sink = requires(S& sink, const void* data, std::size_t bytes) {
  sink.write(data, bytes);
};

namespace detail {

/// The order of the data: larger element types first, then by name, so that every tensor is aligned to its elements.
inline std::vector<std::size_t> safetensors_order(std::span<const tensor_source> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (tensors[a].type != tensors[b].type) return tensors[a].type > tensors[b].type;
    return tensors[a].name < tensors[b].name;
  });
  return order;
}

inline void no_null_byte(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) fail("write_safetensors: the text ", in_quotes(text), " holds a null byte");
}

/// The 8 bytes of the header's size and the header, padded with spaces so that the data begin at a multiple of 8.
inline std::string safetensors_head(std::span<const tensor_source> tensors, std::span<const std::size_t> order,
                                    const std::map<std::string, std::string>& metadata) {
  constexpr std::string_view call = "write_safetensors";
  std::string text = "{";
  const auto key = [&](std::string_view name) {
    no_null_byte(name);
    if (text.back() != '{') text += ',';
    append_json_string(text, name, call);
    text += ':';
  };
  if (!metadata.empty()) {
    key(safetensors_metadata_key);
    text += '{';
    for (const auto& [name, value] : metadata) {
      key(name);
      no_null_byte(value);
      append_json_string(text, value, call);
    }
    text += '}';
  }
  std::uint64_t begin = 0;
  for (const std::size_t i : order) {
    const tensor_source& t = tensors[i];
    require(t.name != safetensors_metadata_key, call, ": a tensor cannot be named __metadata__");
    const std::uint64_t bytes = checked_bytes(t.type, t.shape, "write_safetensors", t.name);
    if (t.data == nullptr && bytes > 0) fail(call, ": tensor ", in_quotes(t.name), " has no data");
    key(t.name);
    text += "{\"dtype\":\"";
    text += name_of(t.type);
    text += "\",\"shape\":[";
    for (std::size_t d = 0; d < t.shape.size(); ++d) {
      if (d > 0) text += ',';
      text += std::to_string(t.shape[d]);
    }
    text.append("],\"data_offsets\":[")
        .append(std::to_string(begin))
        .append(",")
        .append(std::to_string(begin + bytes))
        .append("]}");
    begin += bytes;
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  require(text.size() <= safetensors_most_header, call, ": a header of ", text.size(),
          " bytes is larger than the format's limit of ", safetensors_most_header);
  std::string head;
  for (int i = 0; i < 8; ++i) head += static_cast<char>(static_cast<unsigned char>(text.size() >> (8 * i) & 255));
  return head + text;
}

}  // namespace detail

/// Writes a safetensors file. Names must be unique; everything is checked before the first byte goes out. The sink gets the
/// tensors' memory as it is, so nothing is copied.
template <byte_sink Sink>
void write_safetensors(Sink& sink, std::span<const tensor_source> tensors,
                       const std::map<std::string, std::string>& metadata = {}) {
  std::vector<std::string_view> names;
  for (const tensor_source& t : tensors) names.push_back(t.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) fail("write_safetensors: two tensors are named ", detail::in_quotes(*twice));
  const std::vector<std::size_t> order = detail::safetensors_order(tensors);
  const std::string head = detail::safetensors_head(tensors, order, metadata);
  sink.write(head.data(), head.size());
  for (const std::size_t i : order) {
    const tensor_source& t = tensors[i];
    const std::uint64_t bytes = detail::checked_bytes(t.type, t.shape, "write_safetensors", t.name);
    if (bytes > 0) sink.write(t.data, static_cast<std::size_t>(bytes));
  }
}

/// The bytes of the file in memory.
inline std::string safetensors_bytes(std::span<const tensor_source> tensors,
                                     const std::map<std::string, std::string>& metadata = {}) {
  struct {
    std::string bytes;
    void write(const void* data, std::size_t count) { bytes.append(static_cast<const char*>(data), count); }
  } sink;
  write_safetensors(sink, tensors, metadata);
  return std::move(sink.bytes);
}

GYRE_END
