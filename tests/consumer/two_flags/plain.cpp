#include "body.hpp"
#include "parts.hpp"

std::string run_plain() { return run_body(); }
std::string plain_instruction_set() { return instruction_set(); }
