// Compares a backend with the reference, operation by operation: parity --help.
#include <iostream>
#include <string>
#include <vector>

#include "../support/arguments.hpp"
#include "trials.hpp"

namespace {

constexpr const char* purpose =
    R"(Runs every operation of the contract on the reference and on another backend, from the same operands, and prints a table of the
worst errors beside what they may be. docs/parity.md explains it.

  parity                                 the table: all operations of the cpu backend, float, double and bf16
  parity --right simulated_cuda          of the cuda backend's kernels, on the interpreter
  parity --operation attention           one operation, float
  parity --operation attention --type double --seed 7 --sizes sequences=2,length=33,kv_heads=1,sharing=5,width=8
                                         one trial, as a failure prints it; sizes that are left out are 0
  parity --operation attention --sizes ... --write trial.safetensors
                                         its operands and results, for a program of another language
  parity --operation attention --sizes ... --read answer.safetensors
                                         compares that program's results, tensors output.o and output.lse)";

using gyre::parity::check;

/// The one of that operation; --type has left one type.
template <class Found>
const Found& find(const std::vector<Found>& all, gyre::operation of) {
  for (const Found& one : all)
    if (one.of == of) return one;
  gyre::fail("parity: one trial is of one operation; say which --operation, one that --type has");
}

int run(int count, const char* const* values) {
  examples::arguments given(count, values, purpose);
  const std::string backend =
      given.choice("right", {"cpu", "simulated_cuda"}, "cpu", "the backend that is compared with the reference");
  const std::string operation = given.text("operation", "", "one operation of the contract");
  const std::string type = given.choice("type", {"float", "double", "bf16"}, "float", "scalars of that operation");
  const std::string sizes = given.text("sizes", "", "one trial of that operation");
  gyre::parity::suite_options options;
  options.seed = given.number<std::uint64_t>("seed", options.seed, "of the first trial, or of the one trial");
  options.trials = given.number<gyre::index>("trials", options.trials, "of every operation and type");
  const std::string write = given.text("write", "", "safetensors file for one trial's operands and results");
  const std::string read = given.text("read", "", "safetensors file with results to compare");
  const int threads = given.number("threads", 2, "of the cpu backend");
  if (!given.ready()) return 0;

  const gyre::operation wanted = operation.empty() ? gyre::operation::count : gyre::parity::operation_named(operation);
  const auto wants = [&](const char* one) { return operation.empty() || type == one; };
  examples::trials all;
  if (backend == "cpu") {
    if (wants("float")) examples::add_cpu<float>(all, threads);
    if (wants("double")) examples::add_cpu<double>(all, threads);
    if (wants("bf16")) examples::add_cpu<gyre::bfloat16>(all, threads);
  } else {
    if (wants("float")) examples::add_simulated_cuda<float>(all);
    if (wants("double")) examples::add_simulated_cuda<double>(all);
    if (wants("bf16")) examples::add_simulated_cuda<gyre::bfloat16>(all);
    options.program += " --right " + backend;
  }
  if (!sizes.empty()) {
    const std::vector<std::string> words{"--operation", operation, "--type", type, "--seed", std::to_string(options.seed),
                                         "--sizes",     sizes};
    const check& one = find(all.checks, wanted);
    gyre::require(backend == "cpu" || (write.empty() && read.empty()), "parity: files are written and read with --right cpu");
    if (!write.empty() || !read.empty()) examples::add_files(all, type, threads);
    const gyre::parity::trial trial = gyre::parity::read_trial(words);
    if (!write.empty()) find(all.files, wanted).write(trial, write);
    const gyre::parity::report report = read.empty() ? one.run(trial) : find(all.files, wanted).compare(trial, read);
    std::cout << report;
    return report.passed() ? 0 : 1;
  }
  gyre::require(write.empty() && read.empty(), "parity: --write and --read want one trial: --operation and --sizes");
  std::vector<gyre::parity::outcome> outcomes;
  bool passed = true;
  for (const check& c : all.checks) {
    if (!operation.empty() && c.of != wanted) continue;
    outcomes.push_back(gyre::parity::run_check(c, options));
    if (outcomes.back().passed()) continue;
    std::cout << outcomes.back().failure;
    passed = false;
  }
  gyre::parity::write_table(std::cout, outcomes, operation.empty());
  return passed ? 0 : 1;
}

}  // namespace

int main(int count, char** values) {
  return examples::guarded(count, values, [&] { return run(count, values); });
}
