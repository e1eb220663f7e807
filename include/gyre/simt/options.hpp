// How a machine runs its launches.
#pragma once

#include <cstddef>
#include <cstdint>

#include <gyre/simt/architecture.hpp>

namespace gyre_simt {

/// In which order threads run between two synchronisations, and blocks one after the other.
enum class thread_order { forward, reverse, random };

/// Blocks `first`, `first` + 1, ... of a grid, counted x fastest, then y, then z.
struct block_window {
  std::uint64_t first = 0;
  std::uint64_t count = ~std::uint64_t{0};
};

struct options {
  thread_order order = thread_order::forward;
  std::uint64_t seed = 1;  // of thread_order::random
  architecture target = sm_80;
  block_window blocks{};                 // the part of each grid that runs
  std::size_t stack_bytes = 128 * 1024;  // local memory of a thread, with its calls
  bool races = true;                     // look for races, where kernels are instrumented
  bool count_accesses = false;           // count bank conflicts and sectors, where kernels are instrumented
  bool throws = true;                    // a launch with faults throws fault_error; otherwise they only stay in faults()
  std::size_t most_faults = 16;          // then a launch stops
};

}  // namespace gyre_simt
