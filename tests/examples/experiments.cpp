// The experiments: results as lines, which runs a plan names, and the table. The program: programs/experiments.cpp.
#include "../../examples/experiments/results.hpp"

#include <algorithm>
#include <set>

#include "../../examples/experiments/plan.hpp"
#include "../../examples/experiments/table.hpp"
#include "scratch_folder.hpp"

using namespace gyre_test;
using experiments::experiment;
using experiments::result;

namespace {

result found(const std::string& model, double rate, std::uint64_t seed, std::optional<double> tokens, double accuracy) {
  result r;
  r.of.model = model, r.of.task = "permutations", r.of.length = 8, r.of.learning_rate = rate, r.of.seed = seed,
  r.of.minutes = 8;
  r.date = "2026-01-02", r.steps = 100, r.tokens = 5e6, r.seconds = 480, r.parameters = 985992, r.forward_flops = 805888;
  r.tokens_to_90 = tokens, r.accuracy = accuracy, r.last_accuracy = accuracy / 2;
  r.experts = 128, r.active = 2, r.depths = 8, r.hits = 1140, r.per_depth_diversity = 100.25, r.distinct_sets = 4000;
  if (model != "layered-8") r.pooled_diversity = 120.5, r.distinct_per_token = 0.625, r.used_at_7 = 0.5;
  return r;
}
std::set<std::string> names(const std::vector<experiment>& all) {
  std::set<std::string> out;
  for (const experiment& e : all) out.insert(e.name());
  REQUIRE(out.size() == all.size());
  return out;
}

}  // namespace

TEST_CASE("results are read back exactly, and what a kill has cut is gone", "[experiments]") {
  const scratch_folder folder;
  const auto file = folder / "results.jsonl";
  CHECK(experiments::read_results(file).empty());
  const result a = found("attending-8", 2e-3, 0, 1.25e6, 0.95), b = found("layered-8", 1e-3, 1, std::nullopt, 0.5);
  experiments::append_result(file, a);
  std::ofstream(file, std::ios::app) << R"({"date":"2026-)";
  CHECK(experiments::read_results(file).size() == 1);
  experiments::append_result(file, b);
  const auto all = experiments::read_results(file);
  REQUIRE(all.size() == 2);
  CHECK(experiments::to_json(all[0]) == experiments::to_json(a));
  CHECK(experiments::to_json(all[1]) == experiments::to_json(b));
  CHECK((all[0].of == a.of && all[1].of == b.of));
  CHECK_FALSE(all[1].tokens_to_90);
  CHECK(std::ranges::count(bytes_of(file), '\n') == 2);
  CHECK_THROWS_WITH(experiments::append_result(folder / "no" / "results.jsonl", a), Catch::Contains("no/results.jsonl"));
}

TEST_CASE("a plan compares rates on the first seed and takes the better one to the others", "[experiments]") {
  experiments::plan p;
  p.tasks = {{"permutations", 8}}, p.models = {"attending-8", "layered-16"}, p.learning_rates = {1e-3, 3e-3};
  p.common.minutes = 8;
  std::vector<result> done;
  CHECK(experiments::named_runs(p, done).size() == 4);
  done.push_back(found("attending-8", 1e-3, 0, std::nullopt, 0.89));
  CHECK(experiments::named_runs(p, done).size() == 4);
  done.push_back(found("attending-8", 3e-3, 0, 4e6, 0.88));  // learns later better than never
  const auto named = experiments::named_runs(p, done);
  const auto all = names(named);
  CHECK(all.size() == 7);
  CHECK(all.contains("permutations8_attending-8_lr0.003_rows16_seed2_8min"));
  CHECK(all.contains("permutations8_attending-16_lr0.003_rows16_seed0_8min"));
  CHECK_FALSE(all.contains("permutations8_attending-8_lr0.001_rows16_seed1_8min"));
  done.push_back(found("layered-16", 1e-3, 0, std::nullopt, 0.6));
  done.push_back(found("layered-16", 3e-3, 0, std::nullopt, 0.5));
  CHECK(names(experiments::named_runs(p, done)).contains("permutations8_layered-32_lr0.001_rows16_seed0_8min"));
  CHECK(experiments::find(done, named.front()) == &done[0]);
}

TEST_CASE("a plan in tokens gives runs of every length of rows the steps that these are", "[experiments]") {
  experiments::plan p;
  p.tasks = {{"swaps", 24}, {"k-hops", 48}}, p.models = {"attending-8"}, p.learning_rates = {1e-3}, p.tokens = 6144000;
  CHECK(names(experiments::named_runs(p, {})) == std::set<std::string>{"swaps24_attending-8_lr0.001_rows16_seed0_16000steps",
                                                                       "k-hops48_attending-8_lr0.001_rows16_seed0_8000steps"});
  p.tokens = 1;  // less than a step is one
  CHECK(experiments::named_runs(p, {}).front().steps == 1);
}

TEST_CASE("the table has a row for each run and medians over seeds", "[experiments]") {
  const std::string text =
      experiments::markdown({found("layered-8", 1e-3, 0, std::nullopt, 0.5), found("attending-8", 3e-3, 0, 1e6, 0.95),
                             found("attending-8", 1e-3, 0, 5e5, 0.99), found("attending-8", 3e-3, 1, 2e6, 0.97),
                             found("attending-8", 3e-3, 2, std::nullopt, 0.8)});
  CHECK_THAT(text, Catch::Contains("### permutations, rows of 8") && Catch::Contains("--minutes 8"));
  CHECK_THAT(text,
             Catch::Contains("| DR+DA 8 | 985,992 | 0.806 | 0.003 | 1 | 5.00 | 2.00 | 0.9700 | 0.4850 | 2 of 128 | 100.2 |"
                             " 120.5 | 4,000 | 0.625 | 0.500 | 1,140 | 2026-01-02 |"));
  CHECK_THAT(text, Catch::Contains("| layered 8 | 985,992 | 0.806 | 0.001 | 0 | 5.00 | > 5.00 |"));
  CHECK_THAT(text, Catch::Contains("| DR+DA 8 | 0.003 | 3 | 2.00 | 0.9500 | 100.2 |"));
  CHECK_THAT(text, Catch::Contains("| layered 8 | 0.001 | 1 | not reached | 0.5000 | 100.2 |"));
  CHECK(experiments::markdown({}).empty());
}
