// The catalogue's mixture on text: trained, gone on with, and spoken with, as a user does it.

#include "../../examples/support/training_log.hpp"
#include "process.hpp"

using namespace gyre_test;

namespace {

const std::string programs = GYRE_PROGRAMS;

outcome train(const std::string& text, const std::string& out, std::vector<std::string> more) {
  std::vector<std::string> all{"--model",       "mixture-prose",
                               "--depth",       "fixed",
                               "--mean-steps",  "8",
                               "--backprop",    "0",
                               "--text",        text,
                               "--out",         out,
                               "--rows",        "2",
                               "--length",      "16",
                               "--warm-up",     "4",
                               "--last-tokens", "64",
                               "--watch-steps", "0",
                               "--threads",     "2"};
  all.insert(all.end(), more.begin(), more.end());
  return run(programs + "/train", all);
}

}  // namespace

TEST_CASE("train and generate know a mixture, and the log carries its experts' load", "[programs][threads]") {
  const scratch_folder folder;
  const std::string text = folder.file("text", small_text(20000));
  const std::string whole = (folder / "whole").string(), parts = (folder / "parts").string();
  const outcome trained = train(text, whole, {"--steps", "12"});
  INFO(trained.err);
  REQUIRE(trained.status == 0);
  CHECK_THAT(trained.err, Catch::Contains("mixture-prose") && Catch::Contains("bits per byte"));
  const auto records = examples::training_log(folder / "whole" / "log.jsonl", 100).records();
  REQUIRE(records.steps.size() == 12);
  for (const examples::step_record& r : records.steps) {
    CHECK((r.report.depth.total() == 8 && r.report.depth.gradient_steps == 8));
    CHECK((r.report.expert_load >= 1 && r.report.expert_load <= 32));
    CHECK(r.report.auxiliary_loss == 0);
  }

  // Gone on with, it is the same, biases of the routers included.
  REQUIRE(train(text, parts, {"--steps", "12", "--save-steps", "5"}).status == 0);
  std::filesystem::remove_all(folder / "parts" / "step-00000012");
  const outcome resumed = run(programs + "/train", {"--out", parts, "--resume", "--threads", "1"});
  INFO(resumed.err);
  REQUIRE(resumed.status == 0);
  CHECK_THAT(resumed.err, Catch::Contains("going on from step 10 of 12"));
  const auto weights = [&](const std::string& run) { return bytes_of(folder / run / "step-00000012" / "model.safetensors"); };
  CHECK(weights("whole") == weights("parts"));
  const std::string header = weights("whole").substr(0, 20000);
  for (const char* name : {"core_block.0.depth_attn.Wqkv.weight", "core_block.0.attn.Wqkv.weight", "experts.router.bias",
                           "experts.router.keys", "experts.router.query.weight", "experts.shared_scale"})
    CHECK(header.find(name) != std::string::npos);

  const outcome spoken = run(programs + "/generate", {"--checkpoint", whole, "--prompt", "the sea ", "--max", "20"});
  INFO(spoken.err);
  CHECK(spoken.status == 0);
  CHECK(!spoken.out.empty());
  const outcome scored =
      run(programs + "/generate", {"--checkpoint", whole, "--prompt", "the sea ", "--score", "was calm", "--steps", "8"});
  INFO(scored.err);
  CHECK(scored.status == 0);
}
