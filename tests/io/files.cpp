// Whole files: complete or an error that names the file, the bytes and the reason.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gyre/io/files.hpp>

#include "io/faulty_files.hpp"
#include "io/support.hpp"

using gyre_test::error_text;
using gyre_test::faulty_files;
using gyre_test::scratch_folder;
namespace fs = std::filesystem;
using namespace std::string_literals;

namespace {

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("read_file: whole files up to the limit, nothing beyond it", "[files]") {
  const scratch_folder folder;
  const std::string text = "two\nlines\0and a null byte"s;
  gyre::write_file(folder / "a", text);
  CHECK(gyre::read_file(folder / "a") == text);
  CHECK(gyre::read_file(folder / "a", text.size()) == text);
  CHECK(error_text([&] { gyre::read_file(folder / "a", text.size() - 1); }) ==
        "read_file: " + (folder / "a").string() + " holds more than the limit of 24 bytes");
  gyre::write_file(folder / "a", "");
  CHECK(gyre::read_file(folder / "a", 0).empty());
  CHECK(gyre::read_file(folder / "a", SIZE_MAX).empty());
  // Files that claim no size, or have no end.
  CHECK(gyre::read_file("/proc/self/comm").size() > 1);
  CHECK(error_text([&] { gyre::read_file("/dev/zero", 5'000'000); }) ==
        "read_file: /dev/zero holds more than the limit of 5000000 bytes");
  CHECK(error_text([&] { gyre::read_file(folder / "none"); }) ==
        "read_file: cannot open " + (folder / "none").string() + ": No such file or directory (error 2)");
  CHECK(error_text([&] { gyre::read_file(folder.path()); }) ==
        "read_file: cannot read " + folder.path().string() + " after 0 bytes: Is a directory (error 21)");
}

TEST_CASE("read_file: short and interrupted reads are continued, failed ones reported", "[files]") {
  const scratch_folder folder;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i);
  gyre::write_file(folder / "a", text);
  faulty_files files(folder.path());
  files.most_bytes = 7;
  files.interrupts = 2;
  CHECK(gyre::read_file(folder / "a", 1u << 20, files) == text);
  faulty_files broken(folder.path());
  broken.most_bytes = 100;
  broken.fail_from = 3;  // open, two reads
  CHECK(error_text([&] { gyre::read_file(folder / "a", 1u << 20, broken); }) ==
        "read_file: cannot read " + (folder / "a").string() + " after 200 bytes: Input/output error (error 5)");
}

TEST_CASE("write_file: a full disk is an error, on a real device and an injected one", "[files]") {
  CHECK(error_text([] { gyre::write_file("/dev/full", "12345"); }) ==
        "cannot write /dev/full: No space left on device (error 28) after 0 bytes, 5 more to go");
  const scratch_folder folder;
  faulty_files files(folder.path());
  files.room = 12;
  files.most_bytes = 5;
  CHECK(error_text([&] { gyre::write_file(folder / "a", std::string(20, 'x'), files); }) ==
        "cannot write " + (folder / "a").string() + ": No space left on device (error 28) after 12 bytes, 8 more to go");
}

TEST_CASE("write_file: short and interrupted writes are continued", "[files]") {
  const scratch_folder folder;
  faulty_files files(folder.path());
  files.most_bytes = 3;
  files.interrupts = 1;
  gyre::write_file(folder / "a", "a longer text than before", files);
  gyre::write_file(folder / "a", "0123456789", files);
  CHECK(gyre::read_file(folder / "a") == "0123456789");
  class nothing_written : public gyre::file_system {
    ssize_t write(int, const void*, std::size_t) const override { return 0; }
  } none;
  CHECK(error_text([&] { gyre::write_file(folder / "b", "abc", none); }) ==
        "cannot write " + (folder / "b").string() + ": no byte was accepted after 0 bytes, 3 more to go");
}

TEST_CASE("write_file: every failing call is reported", "[files]") {
  const scratch_folder folder;
  for (const auto& [call, expected] :
       std::vector<std::pair<int, std::string>>{{0, "cannot create "}, {1, "cannot write "}, {2, "cannot close "}}) {
    faulty_files files(folder.path());
    files.fail_from = call;
    CHECK_THAT(error_text([&] { gyre::write_file(folder / "a", "abc", files); }),
               Catch::StartsWith(expected + (folder / "a").string()) && Catch::Contains("Input/output error (error 5)"));
  }
}

TEST_CASE("write_file_atomically: write, sync, close, rename, sync the folder", "[files]") {
  const scratch_folder folder;
  gyre::write_file(folder / "a", "old");
  faulty_files files(folder.path());
  gyre::write_file_atomically(folder / "a", "new", files);
  CHECK(gyre::read_file(folder / "a") == "new");
  CHECK(files.log == std::vector<std::string>{"list .", "open a.tmp-4242-0", "open a.tmp-4242-0", "lock a.tmp-4242-0",
                                              "fstat a.tmp-4242-0", "lstat a.tmp-4242-0", "write a.tmp-4242-0",
                                              "fsync a.tmp-4242-0", "close a.tmp-4242-0", "rename a.tmp-4242-0 a", "open .",
                                              "fsync .", "close .", "close a.tmp-4242-0"});
  CHECK(names_in(folder.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("write_file_atomically: whichever call fails, the name leads to the old bytes or the new", "[files]") {
  bool reached_end = false;
  for (int n = 0; !reached_end; ++n) {
    const scratch_folder folder;
    gyre::write_file(folder / "a", "old");
    faulty_files files(folder.path());
    files.fail_from = n;
    files.problem = n % 2 == 0 ? EIO : ENOSPC;
    const std::string text = error_text([&] { gyre::write_file_atomically(folder / "a", "new and longer", files); });
    reached_end = !files.failed;
    CAPTURE(n, text, files.log.back());
    const std::string found = gyre::read_file(folder / "a");
    if (text == "no error") {
      CHECK(found == "new and longer");
    } else {
      CHECK_THAT(text, Catch::Contains((folder / "a").string()) && Catch::Contains("(error "));
      CHECK((found == "old" || Catch::Matchers::Contains("is written completely").match(text)));
    }
    CHECK(names_in(folder.path()) == std::vector<std::string>{"a"});
    REQUIRE(n < 100);
  }
}

TEST_CASE("write_file_atomically: what a killed process left is removed, nothing else", "[files]") {
  const scratch_folder folder;
  for (const char* name :
       {"a.tmp-100-0", "a.tmp-200-5", "a.tmp-4242-0", "b.tmp-100-0", "a.tmp-100", "a.tmp-100-0x", "a.tmp-x-0", "a.tmp-0-0",
        "a.tmp--1-0", ".tmp-100-0", "a.tmp-100-", "a7.tmp-100-0", "a.tmp-99999999999-0"})
    gyre::write_file(folder / name, "left");
  faulty_files files(folder.path());
  files.living = {200};
  gyre::write_file_atomically(folder / "a", "new", files);
  // Gone: of process 100, which is dead, and of our own number without a lock; with a number or without behind the "a".
  CHECK(names_in(folder.path()) == std::vector<std::string>{".tmp-100-0", "a", "a.tmp--1-0", "a.tmp-0-0", "a.tmp-100",
                                                            "a.tmp-100-", "a.tmp-100-0x", "a.tmp-200-5", "a.tmp-99999999999-0",
                                                            "a.tmp-x-0", "b.tmp-100-0"});
}

TEST_CASE("write_file_atomically: a link in the place of a temporary is not followed", "[files]") {
  const scratch_folder folder;
  fs::create_directory(folder / "precious");
  gyre::write_file(folder / "precious/x", "kept");
  fs::create_symlink(folder / "precious", folder / "a.tmp-100-0");
  faulty_files files(folder.path());
  gyre::write_file_atomically(folder / "a", "new", files);
  CHECK(gyre::read_file(folder / "precious/x") == "kept");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"a", "a.tmp-100-0", "precious"});
}

TEST_CASE("write_file_atomically: a temporary that was taken for stale before its lock is given up for another", "[files]") {
  // The moment between making and locking, played by one thread: remove_stale() of another removes the file, and then perhaps
  // a third has made its own under the same name.
  class hasty_files : public gyre_test::faulty_files {
   public:
    hasty_files(const fs::path& root, bool again) : faulty_files(root), root_(root), again_(again) {}
    int lock(int file) const override {
      if (!done_) {
        fs::remove(root_ / "a.tmp-4242-0");
        if (again_) gyre::write_file(root_ / "a.tmp-4242-0", "of a third thread");
      }
      done_ = true;
      return faulty_files::lock(file);
    }

   private:
    fs::path root_;
    bool again_;
    mutable bool done_ = false;
  };
  for (const bool again : {false, true}) {
    const scratch_folder folder;
    const hasty_files files(folder.path(), again);
    gyre::write_file_atomically(folder / "a", "new", files);
    CHECK(gyre::read_file(folder / "a") == "new");
    CHECK(std::count(files.log.begin(), files.log.end(), "rename a.tmp-4242-1 a") == 1);
    CHECK(fs::exists(folder / "a.tmp-4242-0") == again);
  }
}

TEST_CASE("write_file_atomically: threads that save the same name do not take each other's temporaries for stale",
          "[files][threads]") {
  const scratch_folder folder;
  std::vector<std::thread> threads;
  std::vector<std::string> problems(4, "no error");
  for (std::size_t t = 0; t < problems.size(); ++t)
    threads.emplace_back([&, t] {
      problems[t] = error_text([&] {
        for (int i = 0; i < 50; ++i) gyre::write_file_atomically(folder / "a", std::string(1000, static_cast<char>('a' + t)));
      });
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(problems == std::vector<std::string>(4, "no error"));
  const std::string found = gyre::read_file(folder / "a");
  CHECK(found == std::string(1000, found[0]));
  CHECK(names_in(folder.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("system_files: a dead process is told from a living one", "[files]") {
  CHECK(gyre::system_files.alive(::getpid()));
  CHECK(gyre::system_files.alive(1));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK_FALSE(gyre::system_files.alive(child));
}
