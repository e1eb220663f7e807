#include <iostream>

#include "parts.hpp"

int main() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    std::cout << "skipped: this processor has no AVX2, which one part of the program needs\n";
    return 0;
  }
  std::cout << plain_instruction_set() << ": " << run_plain() << '\n' << wide_instruction_set() << ": " << run_wide() << '\n';
  return plain_instruction_set() != wide_instruction_set() && run_plain() == run_wide() ? 0 : 1;
}
