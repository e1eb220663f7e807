// Whole files: read with a bound, written completely or, where it matters, all at once or not at all.
#pragma once

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <gyre/io/file_system.hpp>
#include <gyre/io/temporary.hpp>

GYRE_BEGIN

/// The bytes of a file, a pipe or a device. Throws when it cannot be read or holds more than `limit` bytes; memory grows with
/// what is read, never with what a file claims to hold.
inline std::string read_file(const std::filesystem::path& path, std::size_t limit = std::size_t{1} << 30,
                             const file_system& files = system_files) {
  detail::descriptor file = detail::open_file(path.string(), O_RDONLY, files);
  if (!file) fail("read_file: cannot open ", path.string(), ": ", detail::errno_text());
  constexpr std::size_t block = std::size_t{1} << 20;
  std::string bytes;
  std::size_t filled = 0;
  while (true) {
    // One byte more than the limit tells "exactly as large" from "larger".
    const std::size_t want = limit - filled < block ? limit - filled + 1 : block;
    bytes.resize(filled + want);
    const ssize_t got = detail::uninterrupted([&] { return files.read(file.get(), bytes.data() + filled, want); });
    if (got < 0) fail("read_file: cannot read ", path.string(), " after ", filled, " bytes: ", detail::errno_text());
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    require(filled <= limit, "read_file: ", path.string(), " holds more than the limit of ", limit, " bytes");
  }
  bytes.resize(filled);
  return bytes;
}

/// A file that is being written from its first byte on. Nothing counts as written before finish() has returned.
class file_writer {
 public:
  /// `flags` are those of open(2) beside O_WRONLY and O_CREAT: O_EXCL for a new file, O_TRUNC to overwrite one.
  file_writer(const std::filesystem::path& path, int flags, const file_system& files = system_files)
      : path_(path.string()), files_(&files), file_(detail::open_file(path_, O_WRONLY | O_CREAT | flags, files)) {
    if (!file_) fail("cannot create ", path_, ": ", detail::errno_text());
  }
  /// Takes over a file that is already open; `path` is its name in messages.
  file_writer(std::string path, detail::descriptor file, const file_system& files)
      : path_(std::move(path)), files_(&files), file_(std::move(file)) {}

  /// Writes all of the bytes, however many calls that takes.
  void write(const void* data, std::size_t bytes) {
    const char* from = static_cast<const char*>(data);
    std::size_t done = 0;
    while (done < bytes) {
      const ssize_t wrote = detail::uninterrupted([&] { return files_->write(file_.get(), from + done, bytes - done); });
      if (wrote < 0)
        fail("cannot write ", path_, ": ", detail::errno_text(), " after ", written_ + done, " bytes, ", bytes - done,
             " more to go");
      require(wrote > 0, "cannot write ", path_, ": no byte was accepted after ", written_ + done, " bytes, ", bytes - done,
              " more to go");
      done += static_cast<std::size_t>(wrote);
    }
    written_ += bytes;
  }
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }

  /// Puts the bytes on the disk itself and closes the file.
  void finish() {
    if (detail::uninterrupted([&] { return files_->fsync(file_.get()); }) != 0)
      fail("cannot put ", path_, " (", written_, " bytes) on the disk: ", detail::errno_text());
    close();
  }
  /// Closes the file; the bytes reach the disk whenever the machine sees fit.
  void close() {
    if (file_.close() != 0) fail("cannot close ", path_, " (", written_, " bytes): ", detail::errno_text());
  }

  const std::string& path() const { return path_; }
  std::size_t written() const { return written_; }

 private:
  std::string path_;
  const file_system* files_;
  detail::descriptor file_;
  std::size_t written_ = 0;
};

/// Creates or overwrites a file. Cheap and not safe against a crash: for what can be made again. Throws when any byte is lost.
inline void write_file(const std::filesystem::path& path, std::string_view bytes, const file_system& files = system_files) {
  file_writer file(path, O_TRUNC, files);
  file.write(bytes);
  file.close();
}

/// Replaces a file by another at one instant: whatever happens, the name leads to all of the old bytes or to all of the new.
/// `fill(file_writer&)` writes the bytes. The new file is on the disk when the call returns.
template <std::invocable<file_writer&> Fill>
void write_file_atomically(const std::filesystem::path& path, Fill&& fill, const file_system& files = system_files) {
  const detail::place at(path, "write_file_atomically");
  detail::remove_stale(at, files);
  detail::descriptor opened, lock;  // the lock lasts beyond the writing, until the file has its final name
  const auto make = [&](const std::string& name) {
    opened = detail::open_file(name, O_WRONLY | O_CREAT | O_EXCL, files);
    if (!opened) return -1;
    lock = detail::open_file(name, O_RDONLY, files);
    return detail::claim(name, lock, files);
  };
  detail::temporary temporary(detail::make_temporary(at, "create", files, make), files);
  file_writer file(temporary.path(), std::move(opened), files);
  fill(file);
  file.finish();
  if (files.rename(temporary.path().c_str(), at.path.c_str()) != 0)
    fail("cannot rename ", temporary.path(), " to ", at.path, ": ", detail::errno_text());
  temporary.release();
  detail::sync_renamed(at, files);
}
inline void write_file_atomically(const std::filesystem::path& path, std::string_view bytes,
                                  const file_system& files = system_files) {
  write_file_atomically(
      path, [&](file_writer& file) { file.write(bytes); }, files);
}

GYRE_END
