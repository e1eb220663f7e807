// A folder of a test's own, and small files in it.
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace gyre_test {

/// An empty folder that goes with the object.
class scratch_folder {
 public:
  scratch_folder() {
    std::random_device random;
    path_ = std::filesystem::temp_directory_path() / ("gyre-examples-" + std::to_string(random()) + std::to_string(random()));
    std::filesystem::create_directories(path_);
  }
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Words that repeat often enough to be learned and seldom enough to be text: `count` bytes of them.
inline std::string small_text(std::size_t count) {
  static constexpr const char* words[] = {"the ",   "sea ",  "was ",   "calm ",         "and ",
                                          "grey, ", "they ", "said. ", "na\xC3\xAFve ", "\n"};
  std::string text;
  for (std::uint32_t x = 1; text.size() < count; x = x * 1664525u + 1013904223u) text += words[(x >> 16) % 10];
  text.resize(count);
  return text;
}

}  // namespace gyre_test
