// Text files as tokens.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <gyre/io/byte_tokens.hpp>
#include <gyre/io/files.hpp>

GYRE_BEGIN

/// The bytes of a file as tokens of byte_tokens. Throws gyre::error that names the file when it cannot be read, is empty, or is
/// larger than `limit` bytes.
inline std::vector<token> bytes_of_file(const std::filesystem::path& path, std::size_t limit = std::size_t{1} << 30) {
  const std::string text = read_file(path, limit);
  require(!text.empty(), "bytes_of_file: ", path.string(), " is empty; there is no text to read");
  return byte_tokens::encode(text);
}

GYRE_END
