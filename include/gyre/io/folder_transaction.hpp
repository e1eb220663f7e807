// A folder that appears complete or not at all, and the series of such folders that a training run leaves.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gyre/io/files.hpp>

GYRE_BEGIN

/// Writes a folder of files under a temporary name beside the final one and renames it when all of it is on the disk:
/// write and sync each file, sync the folder, rename, sync the parent. So a folder under its final name is complete, whatever
/// kills the program or the machine. Without commit(), or when anything fails, the temporary is removed and nothing else has
/// been touched. What an earlier, killed process left of the same family of names is removed first.
class folder_transaction {
 public:
  /// Throws when the folder exists already or its parent does not. `files` must outlive the transaction.
  explicit folder_transaction(const std::filesystem::path& folder, const file_system& files = system_files)
      : files_(&files), at_(folder, "folder_transaction"), temporary_(begin(), files) {}

  /// Writes one file; fill(file_writer&) gives the bytes. `name` is a plain name that is not in the folder yet.
  template <std::invocable<file_writer&> Fill>
  void write(std::string_view name, Fill&& fill) {
    require(!name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos, "folder_transaction: '",
            name, "' is not a plain file name");
    require(state_ == state::open, "folder_transaction: ", at_.path,
            " takes no more files: ", state_ == state::failed ? "an earlier call failed" : "it is committed");
    state_ = state::failed;  // until proven otherwise
    file_writer file(temporary_.path() + "/" + std::string(name), O_EXCL, *files_);
    fill(file);
    file.finish();
    state_ = state::open;
  }
  void write(std::string_view name, std::string_view bytes) {
    write(name, [&](file_writer& file) { file.write(bytes); });
  }

  /// Gives the folder its final name. When this returns, the folder is on the disk.
  void commit() {
    require(state_ == state::open, "folder_transaction: cannot commit ", at_.path, ": ",
            state_ == state::failed ? "an earlier call failed" : "it is committed");
    state_ = state::failed;
    if (detail::sync_descriptor(folder_.get(), *files_) != 0)
      fail("cannot put the folder ", temporary_.path(), " on the disk: ", detail::errno_text());
    if (files_->rename(temporary_.path().c_str(), at_.path.c_str()) != 0)
      fail("cannot rename ", temporary_.path(), " to ", at_.path, ": ", detail::errno_text());
    temporary_.release();
    state_ = state::committed;
    folder_.close();  // was open for reading: nothing can be lost here
    detail::sync_renamed(at_, *files_);
  }

 private:
  enum class state { open, failed, committed };

  std::string begin() {
    struct stat what {};
    require(files_->lstat(at_.path.c_str(), &what) != 0, "folder_transaction: ", at_.path,
            " exists already; choose another name or remove it");
    if (errno != ENOENT) fail("cannot look for ", at_.path, ": ", detail::errno_text());
    detail::remove_stale(at_, *files_);
    return detail::make_temporary(at_, "create the folder", *files_, [&](const std::string& path) {
      if (files_->mkdir(path.c_str(), 0777) != 0) return -1;
      folder_ = detail::open_file(path, O_RDONLY | O_DIRECTORY, *files_);
      return detail::claim(path, folder_, *files_);
    });
  }

  const file_system* files_;
  detail::place at_;
  detail::descriptor folder_;  // open and locked from the making to the rename
  detail::temporary temporary_;
  state state_ = state::open;
};

/// A complete folder of a series: its path and the number that ends its name.
struct numbered_folder {
  std::filesystem::path path;
  std::uint64_t number = 0;
};

/// The complete folders named <prefix><digits> in `parent`, by ascending number. Temporaries never count. Throws when
/// `parent` cannot be listed; when it does not exist there are none.
inline std::vector<numbered_folder> complete_folders(const std::filesystem::path& parent, std::string_view prefix,
                                                     const file_system& files = system_files) {
  const std::string folder = parent.empty() ? "." : parent.string();
  std::vector<std::string> names;
  if (files.list(folder.c_str(), names) != 0) {
    if (errno == ENOENT) return {};
    fail("cannot list ", folder, ": ", detail::errno_text());
  }
  std::vector<numbered_folder> found;
  for (const std::string& name : names) {
    if (name.size() <= prefix.size() || std::string_view(name).substr(0, prefix.size()) != prefix) continue;
    const auto number = detail::whole_number<std::uint64_t>(std::string_view(name).substr(prefix.size()));
    struct stat what {};
    if (!number || files.lstat((folder + "/" + name).c_str(), &what) != 0 || !S_ISDIR(what.st_mode)) continue;
    found.push_back({parent / name, *number});
  }
  std::sort(found.begin(), found.end(), [](const numbered_folder& a, const numbered_folder& b) {
    return a.number != b.number ? a.number < b.number : a.path < b.path;
  });
  return found;
}

/// The complete folder of the highest number, if there is any.
inline std::optional<std::filesystem::path> latest(const std::filesystem::path& parent, std::string_view prefix,
                                                   const file_system& files = system_files) {
  const std::vector<numbered_folder> found = complete_folders(parent, prefix, files);
  if (found.empty()) return std::nullopt;
  return found.back().path;
}

/// Removes all but the `keep` complete folders of the highest numbers. Each is first renamed to a temporary name, so that a
/// program killed on the way leaves no half folder under a final name.
inline void prune(const std::filesystem::path& parent, std::string_view prefix, std::size_t keep,
                  const file_system& files = system_files) {
  const std::vector<numbered_folder> found = complete_folders(parent, prefix, files);
  for (std::size_t i = 0; i + keep < found.size(); ++i) {
    const detail::place at(found[i].path, "prune");
    const std::string temporary =
        detail::make_temporary(at, "prune " + at.path + " by renaming it to", files,
                               [&](const std::string& path) { return files.rename(at.path.c_str(), path.c_str()); });
    // The new name must be on the disk before the first file goes: after a power failure the old one would be a half folder.
    int problem = detail::sync_folder(at.parent, files) == 0 ? 0 : errno;
    if (problem == 0) problem = detail::remove_tree(temporary, files);
    require(problem == 0, "prune: cannot remove ", temporary, " (was ", at.path, "): ", detail::errno_text(problem));
  }
}

GYRE_END
