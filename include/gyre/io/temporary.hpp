// Temporary names beside the final one, and what becomes of them: the ground of every write that is all or nothing.
#pragma once

#include <charconv>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gyre/io/file_system.hpp>

GYRE_BEGIN
namespace detail {

/// Where something is to be saved, taken apart.
struct place {
  std::string path, parent, name;

  place(const std::filesystem::path& given, std::string_view call) {
    const std::filesystem::path whole = given.has_filename() ? given : given.parent_path();  // "folder/" is "folder"
    name = whole.filename().string();
    require(!name.empty() && name != "." && name != "..", call, ": '", given.string(), "' does not end in a name");
    path = whole.string();
    parent = whole.has_parent_path() ? whole.parent_path().string() : ".";
  }
};

/// A name without the digits at its end: "step-" for "step-00000100". Temporaries are cleaned up within such a family only.
inline std::string_view family(std::string_view name) { return name.substr(0, name.find_last_not_of("0123456789") + 1); }

template <class T>
std::optional<T> whole_number(std::string_view digits) {
  T value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc() || end != digits.data() + digits.size() || digits.front() == '-') return std::nullopt;
  return value;
}

/// "<final name>.tmp-<process>-<counter>", taken apart.
struct temporary_name {
  std::string_view final_name;
  pid_t process = 0;
};
inline std::optional<temporary_name> parse_temporary(std::string_view name) {
  constexpr std::string_view mark = ".tmp-";
  const std::size_t at = name.rfind(mark);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::string_view rest = name.substr(at + mark.size());
  const std::size_t dash = rest.find('-');
  if (dash == std::string_view::npos || dash == 0 || dash + 1 == rest.size()) return std::nullopt;
  const auto process = whole_number<pid_t>(rest.substr(0, dash));
  if (!process || *process == 0 || !whole_number<std::size_t>(rest.substr(dash + 1))) return std::nullopt;
  return temporary_name{name.substr(0, at), *process};
}

/// Removes a file, or a folder with all it holds; links are removed, not followed. 0, or the errno of the first failure. What
/// is gone already, removed by someone else meanwhile, is no failure.
inline int remove_tree(const std::string& path, const file_system& files) {
  int problem = 0;
  const auto note = [&](int result) {
    if (result != 0 && problem == 0 && errno != ENOENT) problem = errno;
    return result == 0;
  };
  struct stat what {};
  if (!note(files.lstat(path.c_str(), &what))) return problem;
  if (!S_ISDIR(what.st_mode)) {
    note(files.unlink(path.c_str()));
    return problem;
  }
  std::vector<std::string> names;
  if (!note(files.list(path.c_str(), names))) return problem;
  for (const std::string& name : names) {
    const int inner = remove_tree(path + "/" + name, files);
    if (problem == 0) problem = inner;
  }
  note(files.rmdir(path.c_str()));
  return problem;
}

/// Removes what killed processes left beside `at`: names of our pattern and of its family whose process is gone and that no
/// one has locked. The lock is asked because process numbers repeat: in a container a program has the same one at each start,
/// and two containers may share a folder. Failures are ignored: a save does not need the cleaning.
inline void remove_stale(const place& at, const file_system& files) {
  std::vector<std::string> names;
  if (files.list(at.parent.c_str(), names) != 0) return;
  for (const std::string& name : names) {
    const std::optional<temporary_name> found = parse_temporary(name);
    if (!found || family(found->final_name) != family(at.name)) continue;
    const bool own_number = found->process == files.process();
    if (!own_number && files.alive(found->process)) continue;
    const std::string path = at.parent + "/" + name;
    const descriptor file = open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, files);
    if (!file) continue;
    if (files.lock(file.get()) != 0 && (own_number || errno == EWOULDBLOCK)) continue;
    remove_tree(path, files);
  }
}

/// Locks a temporary that was just made and opened, against remove_stale() of other threads. 0, or -1 and errno; EEXIST when
/// one was quicker, which takes a temporary for stale between its making and its lock.
inline int claim(const std::string& path, const descriptor& file, const file_system& files) {
  const auto attempt = [&]() -> int {
    if (!file) return errno == ENOENT ? EEXIST : errno;
    // Where locks do not work at all (some network file systems), the process number has to do.
    if (files.lock(file.get()) != 0 && errno == EWOULDBLOCK) return EEXIST;
    struct stat named {
    }, opened{};
    if (files.fstat(file.get(), &opened) != 0) return errno;
    if (files.lstat(path.c_str(), &named) != 0) return errno == ENOENT ? EEXIST : errno;
    return named.st_ino == opened.st_ino && named.st_dev == opened.st_dev ? 0 : EEXIST;
  };
  const int problem = attempt();
  if (problem == 0) return 0;
  if (problem != EEXIST) remove_tree(path, files);
  errno = problem;
  return -1;
}

/// Calls make(path) with temporary names until one is free. make returns -1 and errno when it fails.
template <class Make>
std::string make_temporary(const place& at, std::string_view verb, const file_system& files, Make&& make) {
  const std::string stem = at.path + ".tmp-" + std::to_string(files.process()) + "-";
  for (int counter = 0; counter < 1000; ++counter) {
    std::string path = stem + std::to_string(counter);
    if (make(path) >= 0) return path;
    if (errno != EEXIST && errno != ENOTEMPTY) break;
  }
  fail("cannot ", verb, " ", stem, "0: ", errno_text());
}

/// A temporary that goes when its owner does, unless it was renamed.
class temporary {
 public:
  temporary(std::string path, const file_system& files) : path_(std::move(path)), files_(&files) {}
  temporary(const temporary&) = delete;
  temporary& operator=(const temporary&) = delete;
  ~temporary() {
    if (path_.empty()) return;
    try {
      remove_tree(path_, *files_);
    } catch (...) {  // no memory for a list of names: the next save cleans up
    }
  }
  const std::string& path() const { return path_; }
  void release() { path_.clear(); }

 private:
  std::string path_;
  const file_system* files_;
};

/// Puts a folder's own entries on the disk. -1 and errno on failure; file systems that cannot (EINVAL) are taken at their word.
inline int sync_descriptor(int folder, const file_system& files) {
  if (uninterrupted([&] { return files.fsync(folder); }) == 0 || errno == EINVAL) return 0;
  return -1;
}
inline int sync_folder(const std::string& path, const file_system& files) {
  descriptor folder = open_file(path, O_RDONLY | O_DIRECTORY, files);
  if (!folder || sync_descriptor(folder.get(), files) != 0) return -1;
  return folder.close();
}

/// After the rename: makes the new name last.
inline void sync_renamed(const place& at, const file_system& files) {
  if (sync_folder(at.parent, files) != 0)
    fail(at.path, " is written completely, but its name may not outlive a power failure: cannot put the folder ", at.parent,
         " on the disk: ", errno_text());
}

}  // namespace detail
GYRE_END
