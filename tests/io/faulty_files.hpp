// A file system that records its calls and fails where it is told to.
#pragma once

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gyre/io/file_system.hpp>

namespace gyre_test {

/// Real files that are never forced onto the disk: quick.
class unsynced_files : public gyre::file_system {
  int fsync(int) const override { return 0; }
};

/// Real files below `root`, process 4242. Every call is logged as "<call> <path below root>".
class faulty_files : public gyre::file_system {
 public:
  explicit faulty_files(std::filesystem::path root) : root_(root.string()) {}

  int fail_from = -1;                ///< number of the first call that fails, -1: none
  int fail_count = 1;                ///< how many calls fail from there on
  int problem = EIO;                 ///< errno of failing calls
  int interrupts = 0;                ///< so many times each call that may be interrupted is, before it works
  std::size_t most_bytes = 1 << 30;  ///< bytes that one read or write moves
  long room = 1L << 40;              ///< bytes until the disk is full
  std::set<pid_t> living;
  pid_t number = 4242;
  mutable std::vector<std::string> log;
  mutable int calls = 0;
  mutable bool failed = false;

  int open(const char* path, int flags, mode_t mode) const override {
    if (interrupted() || fails("open " + below(path))) return -1;
    const int file = file_system::open(path, flags, mode);
    if (file >= 0) names_[file] = below(path);
    return file;
  }
  ssize_t read(int file, void* into, std::size_t bytes) const override {
    if (interrupted() || fails("read " + names_[file])) return -1;
    return file_system::read(file, into, (std::min)(bytes, most_bytes));
  }
  ssize_t pread(int file, void* into, std::size_t bytes, off_t at) const override {
    if (interrupted() || fails("pread " + names_[file])) return -1;
    return file_system::pread(file, into, (std::min)(bytes, most_bytes), at);
  }
  ssize_t write(int file, const void* from, std::size_t bytes) const override {
    if (interrupted() || fails("write " + names_[file])) return -1;
    if (used_ >= room) {
      errno = ENOSPC;
      return -1;
    }
    bytes = (std::min)({bytes, most_bytes, static_cast<std::size_t>(room - used_)});
    const ssize_t wrote = file_system::write(file, from, bytes);
    used_ += wrote;
    return wrote;
  }
  // Recorded, not done: a test survives no power failure anyway, and disks are slow.
  int fsync(int file) const override { return interrupted() || fails("fsync " + names_[file]) ? -1 : 0; }
  int close(int file) const override {
    const bool fail = fails("close " + names_[file]);
    file_system::close(file);  // the system closes it either way
    if (fail) errno = problem;
    return fail ? -1 : 0;
  }
  int fstat(int file, struct stat* out) const override {
    return fails("fstat " + names_[file]) ? -1 : file_system::fstat(file, out);
  }
  int lstat(const char* path, struct stat* out) const override {
    return fails("lstat " + below(path)) ? -1 : file_system::lstat(path, out);
  }
  int lock(int file) const override { return fails("lock " + names_[file]) ? -1 : file_system::lock(file); }
  int rename(const char* from, const char* to) const override {
    return fails("rename " + below(from) + " " + below(to)) ? -1 : file_system::rename(from, to);
  }
  int mkdir(const char* path, mode_t mode) const override {
    return fails("mkdir " + below(path)) ? -1 : file_system::mkdir(path, mode);
  }
  int rmdir(const char* path) const override { return fails("rmdir " + below(path)) ? -1 : file_system::rmdir(path); }
  int unlink(const char* path) const override { return fails("unlink " + below(path)) ? -1 : file_system::unlink(path); }
  int list(const char* path, std::vector<std::string>& names) const override {
    if (fails("list " + below(path))) return -1;
    const int result = file_system::list(path, names);
    std::sort(names.begin(), names.end());
    return result;
  }
  pid_t process() const override { return number; }
  bool alive(pid_t process) const override { return living.count(process) > 0; }

 private:
  std::string below(const std::string& path) const {
    if (path == root_) return ".";
    return path.rfind(root_ + "/", 0) == 0 ? path.substr(root_.size() + 1) : path;
  }
  bool interrupted() const {
    if (interrupts_seen_++ % (interrupts + 1) == interrupts) return false;
    errno = EINTR;
    return true;
  }
  bool fails(const std::string& entry) const {
    log.push_back(entry);
    const int call = calls++;
    if (fail_from < 0 || call < fail_from || call >= fail_from + fail_count) return false;
    failed = true;
    errno = problem;
    return true;
  }

  std::string root_;
  mutable std::map<int, std::string> names_;
  mutable int interrupts_seen_ = 0;
  mutable long used_ = 0;
};

}  // namespace gyre_test
