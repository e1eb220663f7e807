// The program experiments, in small: it goes on after an interruption, and two share the work.
#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "../../examples/experiments/results.hpp"
#include "../../examples/support/training_log.hpp"
#include "process.hpp"

using namespace gyre_test;
using experiments::result;

namespace {

const std::string program = GYRE_PROGRAMS + std::string("/experiments");

std::vector<std::string> small(const std::filesystem::path& out, std::vector<std::string> more) {
  std::vector<std::string> all{"--out", out.string(),          "--rows", "4", "--length", "2", "--examine-tokens",
                               "40",    "--validation-tokens", "16"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
std::vector<std::string> one(const std::filesystem::path& out, const std::string& steps) {
  return small(out, {"--model", "attending-8", "--task", "permutations", "--lr", "2e-3", "--seed", "3", "--steps", steps});
}
std::vector<double> losses(const std::filesystem::path& run) {
  const examples::training_log log(run / "log.jsonl", std::uint64_t{1} << 40);
  std::vector<double> all;
  for (const auto& s : log.records().steps) all.push_back(s.report.loss);
  return all;
}

}  // namespace

TEST_CASE("an experiment goes on after an interruption and is not repeated", "[programs]") {
  const scratch_folder folder;
  const std::string name = "permutations2_attending-8_lr0.002_rows4_seed3_60steps";
  REQUIRE(run(program, one(folder / "whole", "60")).status == 0);
  process first(program, one(folder / "parts", "60"));
  const auto log = folder / "parts" / name / "log.jsonl";
  while (first.running() && (!std::filesystem::exists(log) || std::ranges::count(bytes_of(log), '\n') < 5))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  first.send(SIGINT);
  const outcome stopped = first.wait();
  INFO(stopped.err);
  CHECK(stopped.status == 130);
  CHECK(experiments::read_results(folder / "parts" / "results.jsonl").empty());

  const outcome done = run(program, one(folder / "parts", "60"));
  INFO(done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.err, Catch::Contains("going on from step"));
  CHECK(losses(folder / "parts" / name) == losses(folder / "whole" / name));
  const auto results = experiments::read_results(folder / "parts" / "results.jsonl");
  REQUIRE(results.size() == 1);
  CHECK((results[0].steps == 60 && results[0].tokens == 480 && results[0].threads == 1 && results[0].experts == 128));
  CHECK(results[0].accuracy == experiments::read_results(folder / "whole" / "results.jsonl").at(0).accuracy);

  const outcome again = run(program, one(folder / "parts", "60"));
  CHECK(again.status == 0);
  CHECK(again.out.empty());
  CHECK(experiments::read_results(folder / "parts" / "results.jsonl").size() == 1);
  CHECK_THAT(run(program, small(folder / "parts", {"--table"})).out, Catch::Contains("| DR+DA 8 |"));
  CHECK_THAT(run(program, small(folder / "x", {"--model", "layered-8", "--lr", "1e-3"})).err,
             Catch::Contains("--model needs --task and --lr"));
  CHECK_THAT(run(program, small(folder / "x", {"--lr", "fast"})).err,
             Catch::Contains("--lr wants a positive number, not 'fast'"));
  CHECK_THAT(run(program, small(folder / "x", {"--steps", "3", "--minutes", "1"})).err,
             Catch::Contains("--steps and --minutes are both given"));
  CHECK_THAT(run(program, small(folder / "x", {"--tokens", "0"})).err, Catch::Contains("--tokens is 0; it must be at least 1"));
}

TEST_CASE("two programs share the runs between them", "[programs][threads]") {
  const scratch_folder folder;
  const auto all = small(folder / "out", {"--model", "recurrent-8", "--task", "permutations", "--steps", "3", "--lr", "1e-3",
                                          "--lr", "2e-3", "--lr", "3e-3", "--lr", "4e-3"});
  process first(program, all), second(program, all);
  const outcome a = first.wait(), b = second.wait();
  INFO(a.err << b.err);
  CHECK(a.status == 0);
  CHECK(b.status == 0);
  const auto results = experiments::read_results(folder / "out" / "results.jsonl");
  CHECK(results.size() == 4);
  std::set<std::string> names;
  for (const result& r : results) names.insert(r.of.name());
  CHECK(names.size() == results.size());
  CHECK(std::ranges::count(a.out, '\n') + std::ranges::count(b.out, '\n') == static_cast<std::ptrdiff_t>(results.size()));
}
