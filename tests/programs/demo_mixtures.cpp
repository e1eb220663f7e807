// The mixtures demo from end to end, small: interrupted, gone on with, and refused where it would be another one.
#include <chrono>
#include <thread>

#include "../../examples/support/training_log.hpp"
#include "process.hpp"

using namespace gyre_test;

namespace {

const std::string demo = GYRE_PROGRAMS + std::string("/demo");

std::vector<std::string> small(const std::filesystem::path& out) {
  return {"mixtures",   "--minutes",        "0.05", "--length", "2",           "--threads", "1", "--out",
          out.string(), "--examine-tokens", "400",  "--task",   "permutations"};
}
std::size_t steps_in(const std::filesystem::path& run) {
  if (!std::filesystem::exists(run / "log.jsonl")) return 0;
  return examples::training_log(run / "log.jsonl", std::uint64_t{1} << 40).records().steps.size();
}

}  // namespace

TEST_CASE("demo mixtures goes on after an interruption, and ends in a report", "[programs]") {
  const scratch_folder folder;
  const auto out = folder / "out";
  process first(demo, small(out));
  std::size_t seen = 0;
  while (first.running() && seen < 3) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::filesystem::path log = out / "attending-8" / "log.jsonl";
    seen = std::filesystem::exists(log) ? static_cast<std::size_t>(std::ranges::count(bytes_of(log), '\n')) : 0;
  }
  first.send(SIGINT);
  const outcome stopped = first.wait();
  INFO(stopped.err);
  CHECK(stopped.status == 130);
  CHECK_FALSE(std::filesystem::exists(out / "report.html"));

  const outcome done = run(demo, small(out));
  INFO(done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.err, Catch::Contains("going on from step"));
  CHECK_THAT(done.out, Catch::Contains("DR+DA 8") && Catch::Contains("layered 8") && !Catch::Contains("fit into that"));
  const std::string report = bytes_of(out / "report.html");
  for (const char* part : {"DR+DA 8: load of each expert", "layered 8: load of each expert", "DR+DA 8: which depth reads which",
                           "Right answers over tokens", "used at 7 or more depths"})
    CHECK(report.find(part) != std::string::npos);
  const std::size_t steps = steps_in(out / "attending-8");
  CHECK(steps >= 3);
  CHECK(steps_in(out / "recurrent-8") == steps);
  CHECK(steps_in(out / "layered-8") == steps);

  const std::string log = bytes_of(out / "layered-8" / "log.jsonl");
  CHECK(run(demo, small(out)).status == 0);  // nothing is left to train
  CHECK(bytes_of(out / "layered-8" / "log.jsonl") == log);
  CHECK(bytes_of(out / "report.html") == report);

  std::vector<std::string> other = small(out);
  other[4] = "3";
  const outcome refused = run(demo, other);
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err, Catch::Contains("holds a demo with other settings") && Catch::Contains("--fresh"));
}
