// The recipes of docs/failed_runs.md, really run: each fails, and is told so on the terminal within 200 steps of the first step
// that shows it. What the watches do in between is tested in session.cpp.
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "../../examples/support/training_log.hpp"
#include "process.hpp"

using namespace gyre_test;

namespace {

const std::string programs = GYRE_PROGRAMS;

constexpr const char* text = "LICENSE";  // it is there, and does not change

/// Nats a byte that a model reaches which knows how frequent each byte is, and nothing else.
double entropy_of_bytes() {
  const std::string all = bytes_of(text);
  std::array<double, 256> counts{};
  for (const char byte : all) ++counts[static_cast<unsigned char>(byte)];
  double sum = 0;
  for (const double count : counts)
    if (count > 0) sum -= count * std::log(count / static_cast<double>(all.size()));
  return sum / static_cast<double>(all.size());
}

struct failed_run {
  examples::training_records records;
  std::string terminal;
};

/// Runs a recipe on one thread until a failure is named, or to its end.
failed_run run_recipe(const std::string& recipe, int seed) {
  const scratch_folder folder;
  const std::filesystem::path log = folder / "run" / "log.jsonl";
  process training(programs + "/train", {"--recipe", recipe, "--text", text, "--out", folder / "run", "--threads", "1",
                                         "--seed", std::to_string(seed), "--last-tokens", "64", "--save-seconds", "100000"});
  bool named = false;
  while (training.running()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (!named && training.err().find("WARNING") != std::string::npos) named = true, training.send(SIGINT);
  }
  const outcome done = training.wait();
  INFO(done.err);
  REQUIRE(done.status == 0);
  return {examples::training_log(log, std::uint64_t{1} << 40).records(), done.err};
}

}  // namespace

TEST_CASE("the recipe that collapses collapses, and is told so in time", "[programs][slow]") {
  const failed_run run = run_recipe("collapse", 1);
  double sum = 0, weight = 0;
  std::optional<std::uint64_t> crossed;
  for (const examples::step_record& r : run.records.steps) {
    sum = 0.98 * sum + 0.02 * r.report.seen.token_correlation, weight = 0.98 * weight + 0.02;
    if (!crossed && sum / weight > 0.95) crossed = r.report.step;
  }
  REQUIRE(crossed);
  REQUIRE(run.records.failures.size() == 1);
  const examples::failure_record& named = run.records.failures[0];
  CHECK(named.failure == "collapse");
  CHECK(named.step >= *crossed);
  CHECK(named.step - *crossed <= 200);
  CHECK_THAT(run.terminal, Catch::Contains("WARNING " + named.sentence));
  // And it is the failure that the sentence tells: one state for all tokens, and nothing learned but how frequent a byte is.
  CHECK(run.records.steps.back().report.loss > entropy_of_bytes() - 0.25);
  CHECK(run.records.steps.at(named.step - 1).report.seen.token_correlation > 0.99);
}

TEST_CASE("the recipe that ignores its state ignores it, and is told so in time", "[programs][slow]") {
  // The text is short and the rate high: of four seeds one was still silent at step 130, and which one may differ with the
  // processor's rounding. Six of six were named on the novels.
  failed_run run = run_recipe("ignored-state", 1);
  if (run.records.failures.empty()) run = run_recipe("ignored-state", 2);
  const double learned = std::log(257) - 1;
  std::optional<std::uint64_t> crossed;
  double at_1 = 0, at_8 = 0;
  REQUIRE(run.records.failures.size() == 1);
  const examples::failure_record& named = run.records.failures[0];
  for (const examples::validation_record& look : run.records.validations) {
    if (look.purpose != "watch" || look.step > named.step) continue;
    at_1 = look.at.at(0).loss, at_8 = look.at.at(1).loss;
    if (!crossed && at_8 < learned && at_1 < 1.005 * at_8) crossed = look.step;
  }
  REQUIRE(crossed);
  CHECK(named.failure == "ignored-state");
  CHECK(named.step >= *crossed);
  CHECK(named.step - *crossed <= 200);
  CHECK_THAT(run.terminal, Catch::Contains("WARNING " + named.sentence));
  // It has learned what follows what, and it was trained at many steps.
  CHECK(at_1 < entropy_of_bytes() - 0.25);
  double mean = 0;
  for (const examples::step_record& r : run.records.steps) mean += r.report.depth.total();
  CHECK(mean / static_cast<double>(run.records.steps.size()) > 16);
}
