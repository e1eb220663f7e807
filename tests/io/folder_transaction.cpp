// Checkpoint folders: complete or absent, whatever fails; the last complete ones are found and kept. [own_unit]
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gyre/io/folder_transaction.hpp>

#include "io/faulty_files.hpp"
#include "io/support.hpp"

using gyre::folder_transaction;
using gyre_test::error_text;
using gyre_test::faulty_files;
using gyre_test::scratch_folder;
namespace fs = std::filesystem;
using names = std::vector<std::string>;

namespace {

names names_in(const fs::path& folder) {
  names found;
  for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

const gyre_test::unsynced_files quick;

/// Saves <folder>/<name> with two files that hold `text` and its length.
void save(const fs::path& folder, const std::string& text, const gyre::file_system& files = quick) {
  folder_transaction saving(folder, files);
  saving.write("weights.safetensors", text);
  saving.write("state.json", std::to_string(text.size()));
  saving.commit();
}

bool complete(const fs::path& folder, const std::string& text) {
  return names_in(folder) == names{"state.json", "weights.safetensors"} &&
         gyre::read_file(folder / "weights.safetensors") == text &&
         gyre::read_file(folder / "state.json") == std::to_string(text.size());
}

}  // namespace

TEST_CASE("folder_transaction: write, sync file, sync folder, rename, sync parent", "[checkpoint]") {
  const scratch_folder folder;
  faulty_files files(folder.path());
  save(folder / "step-2", "abc", files);
  CHECK(files.log == names{"lstat step-2", "list .", "mkdir step-2.tmp-4242-0", "open step-2.tmp-4242-0",
                           "lock step-2.tmp-4242-0", "fstat step-2.tmp-4242-0", "lstat step-2.tmp-4242-0",
                           // each file: written, then on the disk
                           "open step-2.tmp-4242-0/weights.safetensors", "write step-2.tmp-4242-0/weights.safetensors",
                           "fsync step-2.tmp-4242-0/weights.safetensors", "close step-2.tmp-4242-0/weights.safetensors",
                           "open step-2.tmp-4242-0/state.json", "write step-2.tmp-4242-0/state.json",
                           "fsync step-2.tmp-4242-0/state.json", "close step-2.tmp-4242-0/state.json",
                           // the folder, its name, the folder that holds the name
                           "fsync step-2.tmp-4242-0", "rename step-2.tmp-4242-0 step-2", "close step-2.tmp-4242-0", "open .",
                           "fsync .", "close ."});
  CHECK(complete(folder / "step-2", "abc"));
}

TEST_CASE("folder_transaction: whichever call fails, the checkpoints before stay and the error is clear", "[checkpoint]") {
  const int problem = GENERATE(EIO, ENOSPC, EACCES, EDQUOT);
  bool reached_end = false;
  int saved_anyway = 0, n = 0;
  for (; !reached_end; ++n) {
    const scratch_folder folder;
    save(folder / "step-1", "one");
    fs::create_directory(folder / "step-2.tmp-77-0");  // left by a killed process
    gyre::write_file(folder / "step-2.tmp-77-0/weights.safetensors", "o");
    faulty_files files(folder.path());
    files.fail_from = n;
    files.problem = problem;
    files.most_bytes = 2;  // several writes a file
    const std::string text = error_text([&] { save(folder / "step-2", "two two", files); });
    reached_end = !files.failed;
    CAPTURE(n, text, files.log.back());
    CHECK(complete(folder / "step-1", "one"));
    const bool renamed =
        std::count(files.log.begin(), files.log.end(), "rename step-2.tmp-4242-0 step-2") > 0 && fs::exists(folder / "step-2");
    if (text == "no error") {
      CHECK(complete(folder / "step-2", "two two"));
      ++saved_anyway;
    } else {
      CHECK_THAT(text,
                 Catch::Contains((folder / "step-2").string()) && Catch::Contains("(error " + std::to_string(problem) + ")"));
      CHECK(renamed ==
            Catch::Matchers::Contains("is written completely, but its name may not outlive a power failure").match(text));
    }
    if (renamed) CHECK(complete(folder / "step-2", "two two"));
    CHECK(*gyre::latest(folder.path(), "step-") == folder / (renamed ? "step-2" : "step-1"));
    CHECK_FALSE(fs::exists(folder / "step-2.tmp-4242-0"));
    // Once the disk works again, so does saving.
    save(folder / "step-3", "three");
    CHECK(complete(folder / "step-3", "three"));
    REQUIRE(n < 200);
  }
  CHECK(n > 30);
  // Cleaning (list, open, lock, lstat, list, lstat, unlink, rmdir, close), a lock that does not work, and closing what was
  // only read do not stop a save.
  CHECK(saved_anyway == 12);
}

TEST_CASE("folder_transaction: a disk that stays full or broken from any call on loses nothing", "[checkpoint]") {
  bool reached_end = false;
  for (int n = 0; !reached_end; ++n) {
    const scratch_folder folder;
    save(folder / "step-1", "one");
    faulty_files files(folder.path());
    files.fail_from = n;
    files.fail_count = 1 << 20;
    const std::string text = error_text([&] { save(folder / "step-2", "two", files); });
    reached_end = !files.failed;
    CAPTURE(n, text);
    CHECK(complete(folder / "step-1", "one"));
    CHECK((text == "no error" || Catch::Matchers::Contains("Input/output error (error 5)").match(text)));
    // The temporary could not be removed; the next save of the same or of another process does it.
    faulty_files healthy(folder.path());
    healthy.number = n % 2 == 0 ? 4242 : 4243;
    save(folder / "step-3", "three", healthy);
    for (const std::string& name : names_in(folder.path())) CHECK((name == "step-1" || name == "step-2" || name == "step-3"));
  }
}

TEST_CASE("folder_transaction: a disk that fills up after any number of bytes", "[checkpoint]") {
  for (long room = 0; room <= 12; ++room) {
    const scratch_folder folder;
    save(folder / "step-1", "one");
    faulty_files files(folder.path());
    files.room = room;
    files.most_bytes = 4;
    files.interrupts = 1;
    const std::string text = error_text([&] { save(folder / "step-2", "ten bytes!", files); });  // and two of state.json
    CAPTURE(room, text);
    CHECK(complete(folder / "step-1", "one"));
    if (room == 12) {
      CHECK(text == "no error");
      CHECK(complete(folder / "step-2", "ten bytes!"));
    } else {
      const bool first = room < 10;
      CHECK(text == "cannot write " + (folder / "step-2.tmp-4242-0").string() +
                        (first ? "/weights.safetensors" : "/state.json") + ": No space left on device (error 28) after " +
                        std::to_string(first ? room : room - 10) + " bytes, " + std::to_string(first ? 10 - room : 12 - room) +
                        " more to go");
      CHECK(names_in(folder.path()) == names{"step-1"});
    }
  }
}

TEST_CASE("folder_transaction: without commit, and after an exception, nothing remains", "[checkpoint]") {
  const scratch_folder folder;
  {
    folder_transaction saving(folder / "step-1");
    saving.write("a", "1");
    CHECK(names_in(folder.path()).size() == 1);
  }
  CHECK(names_in(folder.path()).empty());
  folder_transaction saving(folder / "step-1");
  CHECK_THROWS_AS(saving.write("a", [](gyre::file_writer&) { throw std::runtime_error("cancelled"); }), std::runtime_error);
  CHECK(error_text([&] { saving.write("b", "1"); }) ==
        "folder_transaction: " + (folder / "step-1").string() + " takes no more files: an earlier call failed");
  CHECK(error_text([&] { saving.commit(); }) ==
        "folder_transaction: cannot commit " + (folder / "step-1").string() + ": an earlier call failed");
}

TEST_CASE("folder_transaction: wrong uses are refused", "[checkpoint]") {
  const scratch_folder folder;
  save(folder / "step-1", "one");
  CHECK(error_text([&] { folder_transaction(folder / "step-1"); }) ==
        "folder_transaction: " + (folder / "step-1").string() + " exists already; choose another name or remove it");
  CHECK_THAT(error_text([&] { folder_transaction(folder / "none/step-1"); }),
             Catch::StartsWith("cannot create the folder ") && Catch::EndsWith(": No such file or directory (error 2)"));
  CHECK(error_text([] { folder_transaction(""); }) == "folder_transaction: '' does not end in a name");
  CHECK(error_text([] { folder_transaction("/"); }) == "folder_transaction: '/' does not end in a name");
  CHECK(error_text([] { folder_transaction("a/.."); }) == "folder_transaction: 'a/..' does not end in a name");
  folder_transaction saving(folder / "step-2/");
  for (const char* name : {"", ".", "..", "a/b", "/a"})
    CHECK(error_text([&] { saving.write(name, "x"); }) ==
          "folder_transaction: '" + std::string(name) + "' is not a plain file name");
  saving.write("a", "x");
  CHECK_THAT(error_text([&] { saving.write("a", "y"); }), Catch::Contains("File exists (error 17)"));
  folder_transaction other(folder / "step-3");
  other.write("a", "x");
  other.commit();
  CHECK(error_text([&] { other.commit(); }) ==
        "folder_transaction: cannot commit " + (folder / "step-3").string() + ": it is committed");
  CHECK_THAT(error_text([&] { other.write("b", "x"); }), Catch::EndsWith("takes no more files: it is committed"));
  CHECK(names_in(folder / "step-3") == names{"a"});
}

TEST_CASE("folder_transaction: two at a time, even of one process, leave each other alone", "[checkpoint]") {
  const scratch_folder folder;
  folder_transaction one(folder / "step-1"), two(folder / "step-2"), again(folder / "step-1");
  CHECK(names_in(folder.path()).size() == 3);
  one.write("a", "1");
  two.write("a", "2");
  again.write("a", "3");
  one.commit();
  two.commit();
  CHECK_THAT(error_text([&] { again.commit(); }), Catch::StartsWith("cannot rename "));  // the name is taken by now
  CHECK(gyre::read_file(folder / "step-1/a") == "1");
  CHECK(gyre::read_file(folder / "step-2/a") == "2");
}

TEST_CASE("folder_transaction: only temporaries of dead processes and of the same family go", "[checkpoint]") {
  const scratch_folder folder;
  for (const char* name :
       {"step-00000001.tmp-100-0", "step-9.tmp-100-3", "step-.tmp-100-0", "step-2.tmp-200-0", "stop-1.tmp-100-0",
        "step-1.tmp-100", "step-1.tmp", "best.tmp-100-0", "step-1x.tmp-100-0", "step-1.tmp-100-0.tmp"}) {
    fs::create_directories(folder / name / "inner");
    gyre::write_file(folder / name / "inner/file", "x");
  }
  faulty_files files(folder.path());
  files.living = {200};
  save(folder / "step-3", "three", files);
  CHECK(names_in(folder.path()) == names{"best.tmp-100-0", "step-1.tmp", "step-1.tmp-100", "step-1.tmp-100-0.tmp",
                                         "step-1x.tmp-100-0", "step-2.tmp-200-0", "step-3", "stop-1.tmp-100-0"});
}

TEST_CASE("latest: the highest number of the complete folders", "[checkpoint]") {
  const scratch_folder folder;
  CHECK_FALSE(gyre::latest(folder.path(), "step-").has_value());
  CHECK_FALSE(gyre::latest(folder / "none", "step-").has_value());
  for (const char* name : {"step-00000009", "step-10", "step-2", "step-11.tmp-1-0", "step-", "step-12x", "step--13", "step-+14",
                           "stop-15", "step-18446744073709551616"})
    fs::create_directory(folder / name);
  gyre::write_file(folder / "step-99", "a file, no folder");
  fs::create_directory_symlink(folder / "step-10", folder / "step-98");
  CHECK(*gyre::latest(folder.path(), "step-") == folder / "step-10");
  std::vector<std::uint64_t> numbers;
  for (const gyre::numbered_folder& found : gyre::complete_folders(folder.path(), "step-")) numbers.push_back(found.number);
  CHECK(numbers == std::vector<std::uint64_t>{2, 9, 10});
  fs::create_directory(folder / "step-18446744073709551615");
  CHECK(*gyre::latest(folder.path(), "step-") == folder / "step-18446744073709551615");
  CHECK_THAT(error_text([&] { gyre::latest(folder / "step-99", "step-"); }), Catch::StartsWith("cannot list "));
}

TEST_CASE("prune: keeps the newest, and first takes the name away", "[checkpoint]") {
  const scratch_folder folder;
  for (int i = 8; i <= 11; ++i) save(folder / ("step-" + std::to_string(i)), "x");
  fs::create_directories(folder / "step-9/notes/deep");  // a folder that the user put there
  faulty_files files(folder.path());
  gyre::prune(folder.path(), "step-", 3, files);
  CHECK(names_in(folder.path()) == names{"step-10", "step-11", "step-9"});
  const auto at = [&](const std::string& entry) {
    return std::find(files.log.begin(), files.log.end(), entry) - files.log.begin();
  };
  CHECK(at("rename step-8 step-8.tmp-4242-0") < at("fsync ."));
  CHECK(at("fsync .") < at("unlink step-8.tmp-4242-0/state.json"));
  gyre::prune(folder.path(), "step-", 2, quick);
  CHECK(names_in(folder.path()) == names{"step-10", "step-11"});
  gyre::prune(folder.path(), "step-", 2, quick);
  CHECK(names_in(folder.path()) == names{"step-10", "step-11"});
  gyre::prune(folder.path(), "other-", 0);
  CHECK(names_in(folder.path()).size() == 2);
}

TEST_CASE("prune: whichever call fails, kept folders stay and no half folder has a final name", "[checkpoint]") {
  bool reached_end = false;
  for (int n = 0; !reached_end; ++n) {
    const scratch_folder folder;
    for (int i = 1; i <= 4; ++i) save(folder / ("step-" + std::to_string(i)), "x");
    faulty_files files(folder.path());
    files.fail_from = n;
    files.fail_count = 1 + n % 3;
    const std::string text = error_text([&] { gyre::prune(folder.path(), "step-", 2, files); });
    reached_end = !files.failed;
    CAPTURE(n, text);
    for (const gyre::numbered_folder& found : gyre::complete_folders(folder.path(), "step-")) CHECK(complete(found.path, "x"));
    CHECK(*gyre::latest(folder.path(), "step-") == folder / "step-4");
    CHECK(fs::exists(folder / "step-3"));
    CHECK((text == "no error" || Catch::Matchers::Contains("Input/output error (error 5)").match(text)));
    save(folder / "step-5", "five");  // cleans up what a failed prune left: the process number is ours, no lock holds it
    faulty_files healthy(folder.path());
    save(folder / "step-6", "six", healthy);
    for (const std::string& name : names_in(folder.path())) CHECK(name.find(".tmp-") == std::string::npos);
  }
}
