// What a general compressor needs for the same text: a yardstick that everybody knows.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace examples {

/// Bytes that `xz -9e` makes of a text; nothing if there is no xz. Works in a file of `folder` that it removes.
inline std::optional<std::size_t> xz_bytes(std::string_view text, const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "for-xz.tmp";
  {
    std::ofstream out(file, std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  std::optional<std::size_t> bytes;
  const std::string command = "xz -9e --stdout '" + file.string() + "' 2>/dev/null | wc -c";
  if (std::FILE* pipe = popen(command.c_str(), "r")) {
    unsigned long count = 0;
    if (std::fscanf(pipe, "%lu", &count) == 1 && count > 0) bytes = count;
    pclose(pipe);
  }
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  return bytes;
}

/// Bits per byte that `xz -9e` reaches on a whole text, on its last part alone, and on the last part when the rest is known.
struct xz_figures {
  double whole = 0, last_alone = 0, last_given_rest = 0;
};
inline std::optional<xz_figures> xz_on(std::string_view text, std::size_t last, const std::filesystem::path& folder) {
  const auto whole = xz_bytes(text, folder), rest = xz_bytes(text.substr(0, text.size() - last), folder),
             alone = xz_bytes(text.substr(text.size() - last), folder);
  if (!whole || !rest || !alone) return std::nullopt;
  const auto bits = [](double bytes, std::size_t of) { return 8 * bytes / static_cast<double>(of); };
  return xz_figures{bits(static_cast<double>(*whole), text.size()), bits(static_cast<double>(*alone), last),
                    bits(static_cast<double>(*whole) - static_cast<double>(*rest), last)};
}

}  // namespace examples
