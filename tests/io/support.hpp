// What the tests of io share: a folder of their own, error texts, bytes.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <gyre/core/error.hpp>

namespace gyre_test {

/// A new, empty folder that goes with the object.
class scratch_folder {
 public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "gyre_io_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// The text of the gyre::error that a call throws; "no error" when it throws none.
template <class Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const gyre::error& problem) {
    return problem.what();
  }
  return "no error";
}

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

/// Where the test's own files lie, given its __FILE__.
inline std::filesystem::path beside(const char* source, std::string_view name) {
  return std::filesystem::path(source).parent_path() / name;
}

}  // namespace gyre_test
