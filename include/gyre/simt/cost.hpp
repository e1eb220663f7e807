// What the accesses of a kernel cost, by source line.
#pragma once

#include <cstdint>
#include <string>

namespace gyre_simt {

/// What the accesses of one source line cost.
struct access_cost {
  std::string kernel, file;
  unsigned line = 0;
  bool shared = false, write = false;
  unsigned bytes = 0;           // a thread's access; the largest, if the line has several
  std::uint64_t requests = 0;   // by warps
  std::uint64_t transfers = 0;  // shared: passes over the banks; global: sectors of 32 bytes
  std::uint64_t ideal = 0;      // transfers if the same bytes lay together
  double ratio() const { return ideal == 0 ? 1 : static_cast<double>(transfers) / static_cast<double>(ideal); }
};

}  // namespace gyre_simt
