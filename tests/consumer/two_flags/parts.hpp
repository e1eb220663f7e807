// What the two differently compiled parts of the program offer each other.
#pragma once

#include <string>

/// Runs the library as the part's own flags made it; returns what it computed, in words. Both must say the same.
std::string run_plain();
std::string run_wide();

/// The inline namespace that the part's copy of the library lives in.
std::string plain_instruction_set();
std::string wide_instruction_set();
