// What the two differently compiled parts of the program offer each other.
#pragma once

#include <string>
#include <vector>

/// What a part computed: parameters as initialised, and loss and gradient of one pass over the same tokens.
struct part_result {
  std::string instruction_set;  // the inline namespace that the part's copy of the library lives in
  std::vector<float> parameters, gradient;
  double loss = 0;
};

/// Runs the library as the part was compiled. `from`: parameters to use instead of freshly initialised ones, if any; they may
/// have been allocated by the other part, and what is returned is freed by main.
part_result run_plain(std::vector<float> from = {});
part_result run_wide(std::vector<float> from = {});
