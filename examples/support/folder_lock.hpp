// One training at a time in a folder.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include <gyre/core/error.hpp>

namespace examples {

/// Locks a folder against other trainings while it lives, by an flock on its file `lock`. The system lets go of it when the
/// program ends, however it ends, so the file that stays behind means nothing.
class folder_lock {
 public:
  folder_lock() = default;
  explicit folder_lock(const std::filesystem::path& folder) {
    const std::string file = (folder / "lock").string();
    descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) gyre::fail("cannot open ", file, ": ", std::system_category().message(errno));
    int result = 0;
    do result = flock(descriptor_, LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR);
    // A file system without locks is no reason not to train.
    if (result == 0 || errno != EWOULDBLOCK) return;
    close(descriptor_);
    gyre::fail(folder.string(), " is in use by another training; wait for its end, or choose another folder");
  }
  ~folder_lock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace examples
