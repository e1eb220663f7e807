// The few system calls that the library makes on files, behind one seam: tests put a full disk or a failing one in its place.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gyre/core/error.hpp>

GYRE_BEGIN

/// POSIX calls with their conventions: -1 and errno on failure. Override what a test wants to see or to fail. Calls may come
/// from several threads at once.
class file_system {
 public:
  constexpr file_system() = default;
  constexpr virtual ~file_system() {}
  file_system(const file_system&) = delete;
  file_system& operator=(const file_system&) = delete;

  virtual int open(const char* path, int flags, mode_t mode) const { return ::open(path, flags, mode); }
  virtual ssize_t read(int file, void* into, std::size_t bytes) const { return ::read(file, into, bytes); }
  virtual ssize_t pread(int file, void* into, std::size_t bytes, off_t at) const { return ::pread(file, into, bytes, at); }
  virtual ssize_t write(int file, const void* from, std::size_t bytes) const { return ::write(file, from, bytes); }
  virtual int fsync(int file) const { return ::fsync(file); }
  virtual int close(int file) const { return ::close(file); }
  virtual int fstat(int file, struct stat* out) const { return ::fstat(file, out); }
  virtual int lstat(const char* path, struct stat* out) const { return ::lstat(path, out); }
  /// An exclusive lock that ends with the open file; never waits.
  virtual int lock(int file) const { return ::flock(file, LOCK_EX | LOCK_NB); }
  virtual int rename(const char* from, const char* to) const { return ::rename(from, to); }
  virtual int mkdir(const char* path, mode_t mode) const { return ::mkdir(path, mode); }
  virtual int rmdir(const char* path) const { return ::rmdir(path); }
  virtual int unlink(const char* path) const { return ::unlink(path); }
  /// Names in a folder without "." and "..", in no order.
  virtual int list(const char* path, std::vector<std::string>& names) const {
    names.clear();
    DIR* folder = ::opendir(path);
    if (folder == nullptr) return -1;
    errno = 0;
    while (const dirent* entry = ::readdir(folder)) {
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
      errno = 0;
    }
    const int problem = errno;
    ::closedir(folder);
    errno = problem;
    return problem == 0 ? 0 : -1;
  }
  virtual pid_t process() const { return ::getpid(); }
  /// False only when it is certain that no such process exists.
  virtual bool alive(pid_t process) const { return ::kill(process, 0) == 0 || errno != ESRCH; }
};

/// The machine's own files.
inline constexpr file_system system_files{};

namespace detail {

/// "No space left on device (error 28)".
inline std::string errno_text(int problem = errno) {
  return std::system_category().message(problem) + " (error " + std::to_string(problem) + ")";
}

/// Calls again for as long as a signal interrupted the call.
template <class Call>
auto uninterrupted(Call&& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Owns an open file.
class descriptor {
 public:
  descriptor() = default;
  descriptor(int file, const file_system& files) : file_(file), files_(&files) {}
  descriptor(descriptor&& other) noexcept : file_(std::exchange(other.file_, -1)), files_(other.files_) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(files_, other.files_);
    return *this;
  }
  ~descriptor() {
    const int problem = errno;  // of the call that failed before, still to be reported
    close();
    errno = problem;
  }

  explicit operator bool() const { return file_ >= 0; }
  int get() const { return file_; }
  /// 0, or -1 and errno. Not called again after EINTR: Linux has closed the file by then.
  int close() {
    if (file_ < 0) return 0;
    return files_->close(std::exchange(file_, -1));
  }

 private:
  int file_ = -1;
  const file_system* files_ = nullptr;
};

inline descriptor open_file(const std::string& path, int flags, const file_system& files) {
  return {uninterrupted([&] { return files.open(path.c_str(), flags | O_CLOEXEC, 0666); }), files};
}

}  // namespace detail

GYRE_END
