#include <cmath>
#include <iostream>
#include <utility>

#include "parts.hpp"

namespace {

// Largest difference between two gradients over the largest element.
double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = std::fmax(difference, std::fabs(double{a[i]} - double{b[i]}));
    largest = std::fmax(largest, std::fabs(double{a[i]}));
  }
  return difference / largest;
}

}  // namespace

int main() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    std::cout << "skipped: this processor has no AVX2, which one part of the program needs\n";
    return 0;
  }
  const part_result plain = run_plain();
  const part_result wide = run_wide(run_plain().parameters);
  const part_result again = run_plain(run_wide().parameters);
  std::cout << plain.instruction_set << ": loss " << plain.loss << '\n'
            << wide.instruction_set << ": loss " << wide.loss << '\n';

  // Random numbers are the same bits everywhere. Sums of at most 97 x 80 products are ordered differently by the two kernels
  // and pass through 6 layers; 1e-4 is 800 roundings of fp32.
  const bool same_parameters = plain.parameters == wide.parameters && again.parameters == plain.parameters;
  const double loss = std::fabs(plain.loss - wide.loss) / plain.loss;
  const double gradient = relative_difference(plain.gradient, wide.gradient);
  std::cout << "relative difference of loss " << loss << ", of gradient " << gradient << '\n';
  const bool repeatable = again.loss == plain.loss && again.gradient == plain.gradient;
  const bool fine = plain.instruction_set != wide.instruction_set && same_parameters && repeatable && loss < 1e-4 &&
                    gradient < 1e-4 && gradient > 0;
  std::cout << (fine ? "ok" : "FAILED") << '\n';
  return fine ? 0 : 1;
}
