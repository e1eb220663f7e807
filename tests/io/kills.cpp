// Kills: a program that saves at every step is killed at random moments; what is then found is complete.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include <gyre/io/folder_transaction.hpp>

#include "io/support.hpp"

namespace fs = std::filesystem;

namespace {

// 200 kB that depend on step and file, so that a mixture of two checkpoints cannot look like one.
std::string contents(std::uint64_t step, int file) {
  std::mt19937_64 random(step * 8 + static_cast<std::uint64_t>(file));
  std::string bytes(200'000, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

std::string name_of(std::uint64_t step) {
  const std::string digits = std::to_string(step);
  return "step-" + std::string(8 - digits.size(), '0') + digits;
}

void save(const fs::path& run, std::uint64_t step) {
  gyre::folder_transaction saving(run / name_of(step));
  for (int file = 0; file < 3; ++file) saving.write("part" + std::to_string(file), contents(step, file));
  saving.commit();
  gyre::prune(run, "step-", 2);
}

bool complete(const gyre::numbered_folder& checkpoint) {
  for (int file = 0; file < 3; ++file)
    if (gyre::read_file(checkpoint.path / ("part" + std::to_string(file))) != contents(checkpoint.number, file)) return false;
  return true;
}

}  // namespace

TEST_CASE("Kills: after each of 100 the last complete checkpoint is whole and no debris piles up", "[checkpoint][kills]") {
  const gyre_test::scratch_folder run;
  std::mt19937_64 random(7);
  const auto begin = std::chrono::steady_clock::now();
  save(run.path(), 1);
  const auto once = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
  int left_behind = 0, died_early = 0;
  std::uint64_t reached = 1;
  // How far a child gets before it is killed differs between machines: go on until enough has been seen.
  int kills = 0;
  for (; kills < 100 || (kills < 1000 && (left_behind < 20 || reached <= 20)); ++kills) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        for (std::uint64_t step = reached + 1;; ++step) save(run.path(), step);
      } catch (...) {
        ::_exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<std::uint64_t>(3 * once + 1)));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (!WIFSIGNALED(status)) ++died_early;

    const auto checkpoints = gyre::complete_folders(run.path(), "step-");
    REQUIRE(checkpoints.size() >= 1);
    for (const gyre::numbered_folder& checkpoint : checkpoints) CHECK(complete(checkpoint));
    CHECK(checkpoints.back().number >= reached);
    reached = checkpoints.back().number;
    int temporaries = 0;
    for (const auto& entry : fs::directory_iterator(run.path()))
      if (entry.path().filename().string().find(".tmp-") != std::string::npos) ++temporaries;
    left_behind += temporaries > 0;
  }
  CAPTURE(reached, left_behind);
  CHECK(died_early == 0);
  CHECK(left_behind >= 20);
  CHECK(reached > 20);  // or the children never got to save
  save(run.path(), reached + 1);
  for (const auto& entry : fs::directory_iterator(run.path()))
    CHECK(entry.path().filename().string().find(".tmp-") == std::string::npos);
  CHECK(gyre::complete_folders(run.path(), "step-").size() == 2);
  WARN(kills << " kills: " << left_behind << " left a temporary, step " << reached << " reached");
}
