// What the listed GPUs allow a launch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gyre_simt {

/// Limits of a launch on one compute capability.
/// Source: CUDA C++ Programming Guide 13.0, "Compute Capabilities", table "Technical Specifications per Compute Capability"; for 11.0
/// also cuda/__device/arch_traits.h of CCCL.
struct architecture {
  const char* name;
  int capability;                // 10 * major + minor
  std::size_t shared_per_block;  // bytes, static and dynamic together, after opting in
  unsigned threads_per_multiprocessor;
  std::size_t shared_per_multiprocessor;  // bytes

  friend constexpr bool operator==(const architecture&, const architecture&) = default;
};

inline constexpr architecture sm_80{"sm_80", 80, 163 * 1024, 2048, 164 * 1024};
inline constexpr architecture sm_86{"sm_86", 86, 99 * 1024, 1536, 100 * 1024};
inline constexpr architecture sm_87{"sm_87", 87, 163 * 1024, 1536, 164 * 1024};
inline constexpr architecture sm_89{"sm_89", 89, 99 * 1024, 1536, 100 * 1024};
inline constexpr architecture sm_90{"sm_90", 90, 227 * 1024, 2048, 228 * 1024};
inline constexpr architecture sm_100{"sm_100", 100, 227 * 1024, 2048, 228 * 1024};
inline constexpr architecture sm_103{"sm_103", 103, 227 * 1024, 2048, 228 * 1024};
inline constexpr architecture sm_110{"sm_110", 110, 227 * 1024, 1536, 228 * 1024};
inline constexpr architecture sm_120{"sm_120", 120, 99 * 1024, 1536, 100 * 1024};
inline constexpr architecture sm_121{"sm_121", 121, 99 * 1024, 1536, 100 * 1024};
inline constexpr std::array architectures{sm_80, sm_86, sm_87, sm_89, sm_90, sm_100, sm_103, sm_110, sm_120, sm_121};

/// The same on every listed architecture; same source.
struct common_limits {
  static constexpr unsigned threads_per_block = 1024;
  static constexpr unsigned block_x = 1024, block_y = 1024, block_z = 64;
  static constexpr unsigned grid_x = 2147483647, grid_y = 65535, grid_z = 65535;
  static constexpr std::size_t static_shared = 48 * 1024;  // bytes; more needs dynamic shared memory
  static constexpr std::size_t parameters = 32764;         // bytes, since CUDA 12.1
};

}  // namespace gyre_simt
