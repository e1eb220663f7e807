// One side of a training that changes backends: what a checkpoint gave it, and what it made of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

namespace gyre_test {

/// What a checkpoint promises to restore.
struct restored {
  std::vector<std::uint32_t> masters, moments;  // their bits
  std::uint64_t steps = 0, rows = 0, tokens = 0;
  bool operator==(const restored&) const = default;
};

struct passage {
  bool same_settings = true;  // of the checkpoint, if there was one
  restored loaded, saved;     // after loading, and when it was saved
  bool rounded = true;        // whether the network had the masters, rounded, at both times
  std::pair<int, int>
      moved_biases{};  // of those by which rows choose experts: how many have moved, and how many of them bf16 cannot hold
  std::vector<double> losses, beyond;  // of the steps before it was saved, and after
  std::filesystem::path checkpoint;    // where it was saved
};

/// Trains a mixture in bf16_mixed: from the checkpoint, if a path is given, for so many steps; saves it to a folder, and goes on.
passage pass_on_cpu(const std::filesystem::path& from, int steps, const std::filesystem::path& to, int beyond);
passage pass_on_cuda(const std::filesystem::path& from, int steps, const std::filesystem::path& to, int beyond);

}  // namespace gyre_test
