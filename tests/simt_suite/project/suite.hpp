// One kernel of the suite: correct, or wrong in one known way.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <gyre/simt.hpp>
#include <optional>
#include <string>
#include <vector>

namespace suite {

namespace simt = gyre::simt;

struct kernel_case {
  const char* name;
  std::optional<simt::fault_kind> wrong;  // what must be found; nothing for a correct kernel
  void (*run)(simt::machine&);            // ends the program if a correct kernel computes something else
};

std::vector<kernel_case> correct_blocks();
std::vector<kernel_case> correct_warps();
std::vector<kernel_case> wrong_order();
std::vector<kernel_case> wrong_barriers();
std::vector<kernel_case> wrong_memory();
void check_costs();

inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("a correct kernel computed something wrong: %s\n", what);
  std::exit(1);
}

}  // namespace suite
