// The experiments with mixtures: experiments --help.
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../support/arguments.hpp"
#include "../support/folder_lock.hpp"
#include "../support/mixture_training.hpp"
#include "../support/task_data.hpp"
#include "plan.hpp"
#include "results.hpp"
#include "run.hpp"
#include "table.hpp"

namespace {

using namespace experiments;

constexpr const char* purpose = R"(Compares depth-recurrent mixtures of experts with layered ones on tasks of reasoning.

  experiments                              all of them: two learning rates on seed 0, the better one on three seeds,
                                           and one run of depth 16 against layered 32
  experiments --model attending-8 --task permutations --lr 2e-3 --seed 0
                                           one run
  experiments --table                      what was found, as markdown

A run trains on one thread. It is added to results.jsonl in --out when it ends, and then never repeated; Ctrl-C saves, and the
same command goes on. Several may work on the same --out at once.)";

constexpr double most_tokens = 1e15;

/// The right to work on a run; nullptr while another program has it.
std::unique_ptr<examples::folder_lock> claim(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "claim");
  try {
    return std::make_unique<examples::folder_lock>(folder / "claim");
  } catch (const gyre::error&) {
    return nullptr;
  }
}

enum class outcome { done, elsewhere, stopped };

/// Does one run unless it is done or another program is at it.
outcome attempt(const experiment& e, const std::filesystem::path& out, looks look) {
  const std::filesystem::path folder = out / e.name(), results = out / "results.jsonl";
  const auto claimed = claim(folder);
  if (claimed == nullptr) return outcome::elsewhere;
  if (find(read_results(results), e) != nullptr) return outcome::done;  // it has ended since we looked
  const auto found = run(e, folder, look);
  if (!found) return outcome::stopped;
  append_result(results, *found);
  std::cout << gyre::write_json(to_json(*found)) << '\n' << std::flush;
  return outcome::done;
}

int stopped() {
  std::cerr << "stopped; the same command goes on\n";
  return 130;
}

/// Until all runs of the plan are in the results, by this program or another.
int work_through(const plan& p, const std::filesystem::path& out, looks look) {
  for (;;) {
    const std::vector<result> done = read_results(out / "results.jsonl");
    bool waits = false, worked = false;
    for (const experiment& e : named_runs(p, done)) {
      if (find(done, e) != nullptr) continue;
      const outcome end = attempt(e, out, look);
      if (end == outcome::stopped) return stopped();
      waits = waits || end == outcome::elsewhere;
      worked = end == outcome::done;
      if (worked) break;  // new results name new runs
    }
    if (worked) continue;
    if (!waits) return 0;
    if (examples::interrupt_guard::requested()) return stopped();
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

int experiment_with(int count, char** values) {
  using namespace examples;
  arguments given(count, values, purpose);
  plan p;
  given.heading("Which runs; all without --model:");
  std::vector<std::string> models = mixture_names();
  models.insert(models.begin(), "");
  const std::string model = given.choice("model", models, "", "this model only, a run for each --lr");
  std::vector<std::string> names = task_names();
  names.insert(names.begin(), "");
  const std::string task = given.choice("task", names, "", "this task only; without it swaps and k-hops");
  const auto length = given.number("length", gyre::index{24}, "tokens of a row of swaps or permutations; k-hops have 48");
  const auto rates = given.texts("lr", "learning rate; without it 1e-3 and 3e-3");
  p.common.seed = given.number<std::uint64_t>("seed", 0, "of the runs of --model");
  given.heading("How long:");
  p.tokens = given.number("tokens", 6144000.0, "of the training of a run, the same for every model");
  p.common.steps = given.number("steps", p.common.steps, "optimiser steps of a run, instead of tokens");
  p.common.minutes = given.number("minutes", p.common.minutes,
                                  "of processor time for the training of a run, instead of tokens; the speed is measured "
                                  "first, then the steps fixed: another machine does not repeat it");
  p.common.rows = given.number("rows", p.common.rows, "rows of a step");
  given.heading("Where:");
  const std::filesystem::path out = given.text("out", "build/experiments", "folder of results.jsonl and of the runs");
  looks look;
  look.examined = given.number("examine-tokens", look.examined, "held-out tokens on which experts are watched");
  look.validation = given.number("validation-tokens", look.validation, "answers of a validation; 0: 256 rows, at least 1,024");
  const bool table = given.flag("table", "only print what was found");
  if (!given.ready()) return 0;
  if (table) {
    std::cout << markdown(read_results(out / "results.jsonl"));
    return 0;
  }
  gyre::require(p.common.minutes >= 0 && p.common.minutes <= most_minutes, "experiments: --minutes is ", p.common.minutes,
                "; it must not be negative and at most ", most_minutes);
  gyre::require(p.tokens >= 1 && p.tokens <= most_tokens, "experiments: --tokens is ", p.tokens,
                "; it must be at least 1 and at most ", most_tokens);
  gyre::require(p.common.steps == 0 || p.common.minutes == 0,
                "experiments: --steps and --minutes are both given; one is enough");
  if (p.common.steps > 0 || p.common.minutes > 0) p.tokens = 0;
  for (const std::string& name : task_names())
    if (task.empty() ? name != "permutations" : task == name)
      p.tasks.emplace_back(name, make_task(name, p.common.rows, length, {})->length());
  for (const std::string& text : rates) {
    double rate = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), rate);
    gyre::require(problem == std::errc{} && end == text.data() + text.size() && rate > 0,
                  "experiments: --lr wants a positive number, not '", text, "'");
    p.learning_rates.push_back(rate);
  }
  if (rates.empty()) p.learning_rates = {1e-3, 3e-3};
  std::filesystem::create_directories(out);
  const interrupt_guard guard;
  if (!model.empty()) {
    gyre::require(p.tasks.size() == 1 && !rates.empty(), "experiments: --model needs --task and --lr");
    p.models = {model}, p.seeds = {p.common.seed}, p.deep.clear();
  }
  return work_through(p, out, look);
}

}  // namespace

int main(int count, char** values) {
  return examples::guarded(count, values, [&] { return experiment_with(count, values); });
}
