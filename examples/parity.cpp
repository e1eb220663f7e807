// Compares the `cpu` backend with the reference, operation by operation: parity --help.
#include <iostream>
#include <string>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>
#include <gyre/parity/files.hpp>

#include "support/arguments.hpp"

namespace {

constexpr const char* purpose =
    R"(Runs every operation of the contract on the reference and on the cpu backend, from the same operands, and prints a table of the
worst errors beside what they may be. docs/parity.md explains it.

  parity                                 the table: all operations, float and double
  parity --operation attention           one operation, float
  parity --operation attention --type double --seed 7 --sizes sequences=2,length=33,kv_heads=1,sharing=5,width=8
                                         one trial, as a failure prints it; sizes that are left out are 0
  parity --operation attention --sizes ... --write trial.safetensors
                                         its operands and results, for a program of another language
  parity --operation attention --sizes ... --read answer.safetensors
                                         compares that program's results, tensors output.o and output.lse)";

using gyre::parity::check;

/// All operations, with one or both scalar types.
struct trials {
  std::vector<check> checks;
  std::vector<gyre::parity::trial_files> files;
};
template <class T>
void add(trials& all, gyre::reference& left, gyre::cpu& right) {
  for (check& c : gyre::parity::all_checks<T>(left, right)) all.checks.push_back(std::move(c));
  for (gyre::parity::trial_files& f : gyre::parity::all_files<T>(left, right)) all.files.push_back(std::move(f));
}

/// The one of that operation; --type has left one type.
template <class Found>
const Found& find(const std::vector<Found>& all, gyre::operation of) {
  for (const Found& one : all)
    if (one.of == of) return one;
  gyre::fail("parity: one trial is of one operation; say which --operation");
}

int run(int count, const char* const* values) {
  examples::arguments given(count, values, purpose);
  const std::string operation = given.text("operation", "", "one operation of the contract");
  const std::string type = given.choice("type", {"float", "double"}, "float", "scalars of that operation");
  const std::string sizes = given.text("sizes", "", "one trial of that operation");
  gyre::parity::suite_options options;
  options.seed = given.number<std::uint64_t>("seed", options.seed, "of the first trial, or of the one trial");
  options.trials = given.number<gyre::index>("trials", options.trials, "of every operation and type");
  const std::string write = given.text("write", "", "safetensors file for one trial's operands and results");
  const std::string read = given.text("read", "", "safetensors file with results to compare");
  const int threads = given.number("threads", 2, "of the cpu backend");
  if (!given.ready()) return 0;

  const gyre::operation wanted = operation.empty() ? gyre::operation::count : gyre::parity::operation_named(operation);
  gyre::reference left;
  gyre::cpu right(threads);
  trials all;
  if (operation.empty() || type == "float") add<float>(all, left, right);
  if (operation.empty() || type == "double") add<double>(all, left, right);
  if (!sizes.empty()) {
    const std::vector<std::string> words{"--operation", operation, "--type", type, "--seed", std::to_string(options.seed),
                                         "--sizes",     sizes};
    const check& one = find(all.checks, wanted);
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
