// The log of a training: what is written is read back, and what a resumed training repeats is cut off.
#include "../../examples/support/training_log.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "scratch_folder.hpp"

using namespace examples;
using gyre_test::bytes_of;
using gyre_test::scratch_folder;

namespace {

step_record step(std::uint64_t number) {
  step_record r;
  r.report = {number, 2.5, {5, 4}, 0.75, 1e-3, 8, 1024, {0.1, 11.3, 0.2, 0.02, 9.5}};
  r.tokens = 1024 * number, r.seconds = 0.1 * static_cast<double>(number);
  return r;
}
validation_record validation(std::uint64_t number) { return {number, "interval", {{1, 2.0, 512}, {8, 1.5, 512}}}; }

}  // namespace

TEST_CASE("a log is JSON, a line for each record, and is read back exactly", "[examples]") {
  const scratch_folder folder;
  const auto path = folder / "log.jsonl";
  {
    training_log log(path);
    for (std::uint64_t n = 1; n <= 3; ++n) log.add(step(n));
    log.add(validation(3));
    log.add(failure_record{3, "collapse", "a \"sentence\"\n"});
  }
  CHECK(bytes_of(path).substr(0, bytes_of(path).find('\n')) ==
        R"({"step":1,"loss":2.5,"bits":3.6067376022224087,"r":9,"n":5,"k":4,"gradient_norm":0.75,"learning_rate":0.001,)"
        R"("rows":8,"step_tokens":1024,"tokens":1024,"seconds":0.1,"token_correlation":0.1,"state_norm":11.3,)"
        R"("state_change":0.2,"relative_change":0.02,"head_input_norm":9.5})");
  const std::string before = bytes_of(path);
  CHECK(std::count(before.begin(), before.end(), '\n') == 5);
  const training_log log(path, 3);
  CHECK(bytes_of(path) == before);
  REQUIRE(log.records().steps.size() == 3);
  for (std::uint64_t n = 1; n <= 3; ++n) CHECK(to_json(log.records().steps[n - 1]) == to_json(step(n)));
  REQUIRE(log.records().validations.size() == 1);
  CHECK(to_json(log.records().validations[0]) == to_json(validation(3)));
  REQUIRE(log.records().failures.size() == 1);
  CHECK(log.records().failures[0].sentence == "a \"sentence\"\n");
}

TEST_CASE("a log tells of experts and of right answers where there are any", "[examples]") {
  const scratch_folder folder;
  const auto path = folder / "log.jsonl";
  step_record with_experts = step(1);
  with_experts.report.expert_load = 1.75, with_experts.report.auxiliary_loss = 0.125;
  validation_record with_answers = validation(2);
  with_answers.right = {{0.25, 0.5, 640, 64}, {0.75, 0.625, 640, 64}};
  {
    training_log log(path);
    log.add(with_experts), log.add(with_answers), log.add(step(3));
  }
  CHECK_THAT(bytes_of(path), Catch::Contains(R"("expert_load":1.75,"auxiliary_loss":0.125})"));
  CHECK_THAT(bytes_of(path), Catch::Contains(R"("tokens":512,"accuracy":0.25,"last_accuracy":0.5,"answers":640,"rows":64})"));
  const training_log log(path, 3);
  CHECK(to_json(log.records().steps.at(0)) == to_json(with_experts));
  CHECK(to_json(log.records().steps.at(1)) == to_json(step(3)));
  CHECK(to_json(log.records().validations.at(0)) == to_json(with_answers));
  CHECK(log.records().validations[0].right.at(1).last == 0.625);
}

TEST_CASE("a resumed training keeps the log up to its checkpoint", "[examples]") {
  const scratch_folder folder;
  const auto path = folder / "log.jsonl";
  {
    training_log log(path);
    for (std::uint64_t n = 1; n <= 9; ++n) log.add(step(n));
    log.add(validation(9));
  }
  std::ofstream(path, std::ios::app) << R"({"step":10,"loss":2.)";  // cut by a kill
  {
    training_log log(path, 7);
    CHECK(log.records().steps.size() == 7);
    CHECK(log.records().validations.empty());
    log.add(step(8));
  }
  const training_log log(path, 100);
  REQUIRE(log.records().steps.size() == 8);
  CHECK(log.records().steps.back().report.step == 8);
  { training_log anew(path, 0); }
  CHECK(bytes_of(path).empty());
}

TEST_CASE("numbers that JSON does not have become null and come back as NaN", "[examples]") {
  const scratch_folder folder;
  const auto path = folder / "log.jsonl";
  {
    training_log log(path);
    step_record r = step(1);
    r.report.gradient_norm = std::numeric_limits<double>::infinity();
    log.add(r);
    validation_record v = validation(1);
    v.at[0].loss = std::nan("");
    log.add(v);
  }
  CHECK_THAT(bytes_of(path), Catch::Contains("\"gradient_norm\":null"));
  const training_log log(path, 1);
  CHECK(std::isnan(log.records().steps.at(0).report.gradient_norm));
  CHECK(std::isnan(log.records().validations.at(0).at.at(0).loss));
}

TEST_CASE("a log that is none is an error that names the file", "[examples]") {
  const scratch_folder folder;
  CHECK_THROWS_WITH(training_log(folder.file("log.jsonl", "{\"step\":1}\nnonsense\n"), 5), Catch::Contains("log.jsonl"));
}
