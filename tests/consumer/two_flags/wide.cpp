#include "body.hpp"
#include "parts.hpp"

std::string run_wide() { return run_body(); }
std::string wide_instruction_set() { return instruction_set(); }
