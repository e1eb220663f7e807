// A kernel of one's own for one operation of a backend, RMSNorm, compared with the reference: own_kernel --help.
#include <cmath>
#include <iostream>
#include <string>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>
#include <gyre/parity/suite.hpp>
#include <gyre/parity/wrapped.hpp>

#include "../support/arguments.hpp"

namespace {

constexpr const char* purpose =
    R"(Two kernels for RMSNorm in place of the cpu backend's, a right one and one that forgets what is left of a row after whole
blocks of eight. The harness draws sizes, compares both with the reference, and makes what fails as small as it can.
The wrong one fails, so the program ends with status 1 unless --kernel right is given.

  own_kernel                             both kernels
  own_kernel --kernel wrong --seed 5 --sizes rows=1,cols=1
                                         one trial, as a report prints it)";

using gyre::index;
using gyre::matrix_view;
constexpr index block = 8;

/// Sum of squares in eight partial sums, as a vector unit would make it. `whole`: elements up to which the row is read.
float sum_of_squares(const float* x, index whole, index cols) {
  float partial[block] = {};
  index j = 0;
  for (; j + block <= whole; j += block)
    for (index lane = 0; lane < block; ++lane) partial[lane] += x[j + lane] * x[j + lane];
  for (; j < whole && j < cols; ++j) partial[j % block] += x[j] * x[j];
  float sum = 0;
  for (const float p : partial) sum += p;
  return sum;
}

/// The signature is the contract's, include/gyre/ops/contract.hpp: gain may be null, y may be x, views may be strided.
void own_norm(matrix_view<const float> x, const float* gain, double eps, matrix_view<float> y, float* rstd, bool with_tail) {
  for (index i = 0; i < x.rows; ++i) {
    const index whole = with_tail ? x.cols : x.cols / block * block;
    const float mean = sum_of_squares(x[i], whole, x.cols) / static_cast<float>(x.cols);
    rstd[i] = 1 / std::sqrt(mean + static_cast<float>(eps));
    for (index j = 0; j < x.cols; ++j) {
      const float unit = x[i][j] * rstd[i];
      y[i][j] = gain != nullptr ? unit * gain[j] : unit;
    }
  }
}

/// Trials of one kernel; true if they pass.
bool examine(const std::string& name, const std::string& sizes, const gyre::parity::suite_options& options) {
  const auto kernel = [with_tail = name == "right"](matrix_view<const float> x, const float* gain, double eps,
                                                    matrix_view<float> y,
                                                    float* rstd) { own_norm(x, gain, eps, y, rstd, with_tail); };
  gyre::reference left;
  auto right = gyre::parity::replace<gyre::operation::rms_norm>(gyre::cpu(1), kernel);
  const gyre::parity::check check = gyre::parity::check_of<gyre::operation::rms_norm, float>(left, right);
  std::cout << "== the " << name << " kernel\n";
  if (!sizes.empty()) {
    const std::vector<std::string> words{"--operation", "rms_norm", "--seed", std::to_string(options.seed), "--sizes", sizes};
    const gyre::parity::report report = check.run(gyre::parity::read_trial(words));
    std::cout << report;
    return report.passed();
  }
  gyre::parity::suite_options mine = options;
  mine.program = "./run own_kernel --kernel " + name;
  const gyre::parity::outcome outcome = gyre::parity::run_check(check, mine);
  if (!outcome.passed()) std::cout << outcome.failure;
  std::cout << outcome.trials << " trials, " << outcome.elements << " elements, worst error " << outcome.worst.excess
            << " of its tolerance\n";
  return outcome.passed();
}

int run(int count, const char* const* values) {
  examples::arguments given(count, values, purpose);
  const std::string kernel = given.choice("kernel", {"right", "wrong", "both"}, "both", "which one");
  const std::string sizes = given.text("sizes", "", "one trial");
  gyre::parity::suite_options options;
  options.seed = given.number<std::uint64_t>("seed", options.seed, "of the first trial, or of the one trial");
  options.trials = given.number<gyre::index>("trials", 40, "to draw");
  given.choice("operation", {"rms_norm"}, "rms_norm", "as reports print it");
  given.choice("type", {"float"}, "float", "as reports print it");
  if (!given.ready()) return 0;
  bool passed = true;
  for (const char* name : {"right", "wrong"})
    if (kernel == "both" || kernel == name) passed = examine(name, sizes, options) && passed;
  return passed ? 0 : 1;
}

}  // namespace

int main(int count, char** values) {
  return examples::guarded(count, values, [&] { return run(count, values); });
}
