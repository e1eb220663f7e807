// Bytes of safetensors files, made by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gyre_test {

/// The bytes of a file: the size of the header (or what a liar says), the header, the data.
inline std::string file_of(const std::string& header, std::size_t data_bytes, std::int64_t declared = -1) {
  std::uint64_t size = declared < 0 ? header.size() : static_cast<std::uint64_t>(declared);
  std::string bytes;
  for (int i = 0; i < 8; ++i, size >>= 8) bytes += static_cast<char>(static_cast<unsigned char>(size & 255));
  bytes += header;
  for (std::size_t i = 0; i < data_bytes; ++i) bytes += static_cast<char>('a' + i % 26);
  return bytes;
}

inline std::string tensor(const std::string& name, const std::string& type, const std::string& shape, std::uint64_t begin,
                          std::uint64_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":[" + std::to_string(begin) +
         "," + std::to_string(end) + "]}";
}

/// {member,member}
inline std::string object(const std::vector<std::string>& members) {
  std::string text = "{";
  for (const std::string& member : members) {
    if (text.size() > 1) text += ',';
    text += member;
  }
  return text + "}";
}

}  // namespace gyre_test
