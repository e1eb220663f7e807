// The programs train and generate from end to end, as a user starts them: small runs, interruption, and wrong input.
#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include <gyre/generate/stop.hpp>
#include <gyre/io/folder_transaction.hpp>

#include "../../examples/support/training_log.hpp"
#include "process.hpp"

using namespace gyre_test;

namespace {

const std::string programs = GYRE_PROGRAMS;
outcome train(std::vector<std::string> arguments) { return run(programs + "/train", std::move(arguments)); }
outcome generate(std::vector<std::string> arguments, const std::string& input = "") {
  return run(programs + "/generate", std::move(arguments), input);
}

/// A short training of the prose model on little text.
std::vector<std::string> small_training(const std::string& text, const std::string& out, int steps) {
  return {"--text",       text, "--out",          out,  "--steps",       std::to_string(steps),
          "--rows",       "2",  "--length",       "16", "--mean-steps",  "2",
          "--backprop",   "2",  "--warm-up",      "4",  "--last-tokens", "64",
          "--save-steps", "10", "--watch-tokens", "64", "--threads",     "2"};
}
std::vector<std::string> with(std::vector<std::string> arguments, std::vector<std::string> more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string weights(const std::filesystem::path& run) {
  const auto latest = gyre::latest(run, "step-");
  REQUIRE(latest);
  return bytes_of(*latest / "model.safetensors");
}
examples::training_records records(const std::filesystem::path& run) {
  return examples::training_log(run / "log.jsonl", std::uint64_t{1} << 40).records();
}
std::size_t lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n'));
}

}  // namespace

TEST_CASE("train, interrupted and resumed, ends with the weights of the uninterrupted run", "[programs][threads]") {
  const scratch_folder folder;
  const std::string text = folder.file("text", small_text(20000));
  constexpr int steps = 120;
  const outcome whole = train(small_training(text, folder / "whole", steps));
  INFO(whole.err);
  REQUIRE(whole.status == 0);
  CHECK_THAT(whole.err, Catch::Contains("huginn-prose") && Catch::Contains("bits per byte"));

  process interrupted(programs + "/train", small_training(text, folder / "parts", steps));
  while (interrupted.running() && lines(folder / "parts" / "log.jsonl") < 25)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  interrupted.send(SIGINT);
  const outcome stopped = interrupted.wait();
  INFO(stopped.err);
  REQUIRE(stopped.status == 0);
  CHECK_THAT(stopped.err, Catch::Contains("go on with: train --out " + (folder / "parts").string() + " --resume"));
  const std::size_t done = records(folder / "parts").steps.size();
  REQUIRE(done >= 20);
  REQUIRE(done < steps);

  // A killed program leaves more in the log than its checkpoint has seen.
  process killed(programs + "/train", {"--out", folder / "parts", "--resume", "--threads", "1"});
  while (killed.running() && lines(folder / "parts" / "log.jsonl") < done + 15)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  killed.send(SIGKILL);
  CHECK(killed.wait().status == 128 + SIGKILL);

  const outcome resumed = train({"--out", folder / "parts", "--resume"});
  INFO(resumed.err);
  REQUIRE(resumed.status == 0);
  CHECK_THAT(resumed.err, Catch::Contains("going on from step"));
  CHECK(weights(folder / "parts") == weights(folder / "whole"));

  const examples::training_records a = records(folder / "whole"), b = records(folder / "parts");
  REQUIRE(a.steps.size() == steps);
  REQUIRE(b.steps.size() == steps);
  for (std::size_t n = 0; n < steps; ++n) {
    CHECK(b.steps[n].report.step == n + 1);
    CHECK(b.steps[n].report.loss == a.steps[n].report.loss);
    CHECK(b.steps[n].report.learning_rate == a.steps[n].report.learning_rate);
  }
  CHECK(a.validations.back().purpose == "last");
  CHECK(to_json(b.validations.back()) == to_json(a.validations.back()));
}

TEST_CASE("every option of train reaches the trainer", "[programs][threads]") {
  const scratch_folder folder;
  const std::string text = folder.file("text", small_text(8000));
  const std::map<std::string, std::vector<std::string>> variants{
      {"adamw", {}},
      {"huginn_adam", {"--optimizer", "huginn_adam", "--lr", "1e-3", "--running-start"}},
      {"muon", {"--optimizer", "muon", "--schedule", "cosine"}},
      {"fixed", {"--depth", "fixed", "--mean-steps", "3"}},
      {"uniform", {"--depth", "uniform", "--low", "2", "--high", "3", "--curriculum", "--schedule", "constant"}},
      {"parts", {"--rows", "1", "--micro-batches", "2", "--packing", "drop_tail"}},
      {"failed-collapse", {"--recipe", "collapse"}},
      {"failed-ignored-state", {"--recipe", "ignored-state"}}};
  for (const auto& [name, more] : variants) {
    const outcome done = train(with(small_training(text, folder / name, 4), more));
    INFO(name << ": " << done.err);
    REQUIRE(done.status == 0);
  }
  const auto state = [&](const std::string& name) {
    const std::string file = (*gyre::latest(folder / name, "step-") / "state.json").string();
    return gyre::parse_json(gyre::read_file(file), file);
  };
  const auto rule = [&](const std::string& name, const char* which) {
    return state(name).find("rules")->find(which)->find("name")->string();
  };
  CHECK(rule("adamw", "optimizer") == "adamw");
  CHECK(rule("huginn_adam", "optimizer") == "huginn_adam");
  CHECK(rule("muon", "optimizer") == "muon");
  CHECK(rule("adamw", "schedule") == "warmup_constant_cooldown");
  CHECK(rule("muon", "schedule") == "warmup_cosine");
  CHECK(rule("adamw", "depth") == "lognormal_poisson");
  CHECK(rule("fixed", "depth") == "fixed_depth");
  CHECK(rule("uniform", "depth") == "curriculum");
  for (const auto& step : records(folder / "fixed").steps) CHECK(step.report.depth.total() == 3);
  for (const auto& step : records(folder / "parts").steps) CHECK(step.report.rows == 2);
  CHECK(state("failed-collapse").find("data")->find("settings")->find("model")->string() == "failed-collapse");
}

TEST_CASE("train learns the hops task without text", "[programs][threads]") {
  const scratch_folder folder;
  const outcome done = train({"--task", "hops", "--out", folder / "run", "--steps", "3", "--last-tokens", "64"});
  INFO(done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.err, Catch::Contains("huginn-hops") && Catch::Contains("bits per answer"));
  const outcome more = train({"--out", folder / "run", "--resume", "--steps", "5", "--rows", "32", "--recipe", "main"});
  INFO(more.err);
  CHECK(more.status == 0);
  CHECK_THAT(more.err, Catch::Contains("note: --rows was 64 and is 32") && Catch::Contains("note: --recipe is ignored"));
  CHECK_THAT(more.err, Catch::Contains("note: options.total_steps"));
  CHECK(records(folder / "run").steps.size() == 5);
  CHECK_THAT(generate({"--checkpoint", folder / "run", "--prompt", "x"}).err, Catch::Contains("knows no text"));
}

TEST_CASE("a time becomes a number of steps, which is kept", "[programs][threads][slow]") {
  const scratch_folder folder;
  auto arguments = small_training(folder.file("text", small_text(20000)), folder / "run", 1);
  arguments[4] = "--minutes", arguments[5] = "0.05";
  const outcome done = train(arguments);
  INFO(done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.err, Catch::Contains("steps fit into 0.05 minutes"));
  CHECK(records(folder / "run").steps.size() > 4);
  CHECK_THAT(train({"--out", folder / "run", "--resume", "--minutes", "1"}).err,
             Catch::Contains("which --minutes cannot change"));
}

TEST_CASE("train can be interrupted while it measures its speed", "[programs][threads]") {
  const scratch_folder folder;
  auto arguments = small_training(folder.file("text", small_text(20000)), folder / "run", 1);
  arguments[4] = "--minutes", arguments[5] = "1000";
  arguments.push_back("--curriculum");
  process measuring(programs + "/train", arguments);
  while (measuring.running() && measuring.err().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  measuring.send(SIGINT);
  const outcome stopped = measuring.wait();  // 20 minutes if it did not listen
  INFO(stopped.err);
  CHECK(stopped.status == 0);
  CHECK_THAT(stopped.err,
             Catch::Contains("measuring the speed, for about 20:00") && Catch::Contains("stopped while measuring"));
}

TEST_CASE("a training that goes on keeps to the text that it holds out, and tells what is other", "[programs][threads]") {
  const scratch_folder folder;
  const std::string run = folder / "run";
  REQUIRE(train(small_training(folder.file("text", small_text(20000)), run, 3)).status == 0);
  CHECK_THAT(train({"--out", run, "--resume", "--steps", "5", "--hold-out", "100"}).err,
             Catch::Contains("holds out 200000 bytes, which --hold-out cannot change to 100"));
  const outcome more = train({"--out", run, "--resume", "--steps", "5", "--length", "8", "--micro-batches", "2"});
  INFO(more.err);
  CHECK(more.status == 0);
  CHECK_THAT(more.err, Catch::Contains("note: --length was 16 and is 8; the data go on from row 6, which is other text now"));
  CHECK_THAT(more.err, Catch::Contains("note: --micro-batches was 1 and is 2"));
  // One document gives one row without its tail, so there is no row 14 to go on from.
  const outcome packed = train({"--out", run, "--resume", "--steps", "6", "--packing", "drop_tail"});
  CHECK(packed.status == 1);
  CHECK_THAT(packed.err, Catch::Contains("note: --packing was keep_tail and is drop_tail; the data go on from row 14"));
}

TEST_CASE("a program whose output is lost says so", "[programs]") {
  const outcome lost = run("/bin/sh", {"-c", programs + "/train --help > /dev/full"});
  CHECK(lost.status == 1);
  CHECK_THAT(lost.err, Catch::Contains("train: cannot write to standard output"));
}

TEST_CASE("train refuses what is wrong in one sentence", "[programs]") {
  const scratch_folder folder;
  const std::string text = folder.file("text", small_text(5000)), empty = folder.file("empty", "");
  const auto refuses = [&](std::vector<std::string> arguments, const std::string& sentence) {
    const outcome done = train(std::move(arguments));
    CHECK(done.status == 1);
    CHECK_THAT(done.err, Catch::Contains(sentence));
    CHECK(std::count(done.err.begin(), done.err.end(), '\n') <= 1);
  };
  refuses({}, "nothing to train on; give --text FILE or --task hops");
  refuses({"--text", folder / "absent", "--steps", "1"}, "cannot open " + (folder / "absent").string());
  refuses({"--text", empty, "--steps", "1"}, "is empty; there is no text to read");
  refuses({"--text", text, "--steps", "1", "--model", "gpt"}, "--model is one of huginn-prose, huginn-hops");
  refuses({"--text", text, "--steps", "1", "--model", "huginn-hops"}, "does not fit to --text");
  refuses({"--text", text, "--task", "hops"}, "exclude each other");
  refuses({"--text", text, "--steps", "1", "--minutes", "1"}, "--steps and --minutes exclude each other");
  refuses({"--text", text, "--steps", "1", "--lr", "-1"}, "adamw: lr is -1");
  refuses({"--text", text, "--steps", "1", "--mean-steps", "0"}, "lognormal_poisson: mean is 0");
  refuses({"--text", text, "--steps", "1", "--backprop", "-1"}, "backprop is -1");
  refuses({"--text", text, "--steps", "1", "--rows", "0"}, "0 rows of 256 tokens");
  refuses({"--text", text, "--steps", "1", "--rows", "99999999999"}, "a micro-batch has at most 2^31 tokens");
  refuses({"--text", text, "--steps", "1", "--length", "257"}, "--length is 257; the context of huginn-prose is 256 tokens");
  refuses({"--text", text, "--steps", "1", "--threads", "0"}, "0 threads asked for");
  for (const std::string minutes : {"inf", "nan", "1e300", "-1", "0"})
    refuses({"--text", text, "--minutes", minutes}, "it must be more than 0 and at most 1000000");
  for (const std::string option : {"--last-tokens", "--validation-tokens", "--watch-tokens", "--save-seconds"})
    refuses({"--text", text, "--steps", "1", option, "-1"}, option + " is -1; it must not be negative");
  refuses({"--text", text, "--steps", "1", "--save-seconds", "nan"}, "--save-seconds is nan");
  refuses({"--resume"}, "--resume wants --out");
  refuses({"--resume", "--out", folder / "absent"}, "holds no checkpoint to resume from");
  CHECK(train({"--help"}).status == 0);
  CHECK_THAT(train({"--help"}).out, Catch::Contains("--mean-steps") && Catch::Contains("--resume"));
}

TEST_CASE("generate continues a text, the same each time, in whole characters", "[programs][threads]") {
  const scratch_folder folder;
  REQUIRE(train(small_training(folder.file("text", small_text(8000)), folder / "run", 6)).status == 0);
  const std::vector<std::string> base{"--checkpoint", folder / "run", "--seed", "5", "--max", "40", "--temperature", "1.5"};

  const outcome first = generate(with(base, {"--prompt", "the sea", "--steps", "3"}));
  INFO(first.err);
  REQUIRE(first.status == 0);
  CHECK_THAT(first.err, Catch::Contains("40 tokens") && Catch::Contains("as many tokens as asked for"));
  CHECK(generate(with(base, {"--prompt", "the sea", "--steps", "3", "--threads", "1"})).out == first.out);
  CHECK(generate(with(base, {"--steps", "3"}), "the sea").out == first.out);  // from standard input
  CHECK(generate(with(base, {"--prompt", "the sea", "--steps", "3", "--echo"})).out == "the sea" + first.out);
  CHECK(generate({"--checkpoint", *gyre::latest(folder / "run", "step-"), "--seed", "5", "--max", "40", "--temperature", "1.5",
                  "--prompt", "the sea", "--steps", "3"})
            .out == first.out);

  // Drafts change the time alone.
  const outcome drafted = generate(with(base, {"--prompt", "the sea", "--steps", "3", "--draft-steps", "1"}));
  CHECK(drafted.out == first.out);
  CHECK_THAT(drafted.err, Catch::Contains("drafts were right"));
  CHECK_THAT(generate(with(base, {"--prompt", "x", "--exit", "0.5", "--draft-steps", "1"})).err,
             Catch::Contains("--draft-steps and --exit exclude each other"));

  // A hot model of bytes writes all sorts of them; what it cannot finish at the end is left out.
  const outcome hot = generate({"--checkpoint", folder / "run", "--temperature", "9", "--top-p", "1", "--prompt", "x"});
  CHECK_THAT(hot.err, Catch::Contains("the context of 256 tokens is full"));
  CHECK(gyre::utf8_incomplete_tail(std::string_view(hot.out).substr(0, hot.out.size() - 1)) == 0);

  const outcome exits = generate(with(base, {"--prompt", "the sea", "--exit", "0.5", "--cap", "9", "--show-steps"}));
  INFO(exits.err);
  CHECK(exits.status == 0);
  CHECK_THAT(exits.err, Catch::Contains("step"));
  CHECK_THAT(exits.err, Catch::Contains("#"));
  CHECK(generate(with(base, {"--prompt", "the sea", "--greedy"})).status == 1);

  // A stop string is not part of the text.
  const std::string stop = first.out.substr(10, 3);
  const outcome ended = generate(with(base, {"--prompt", "the sea", "--steps", "3", "--stop", stop}));
  CHECK(ended.out == first.out.substr(0, first.out.find(stop)) + "\n");
  CHECK_THAT(ended.err, Catch::Contains("ended by: a stop string"));
}

TEST_CASE("train and generate work in bf16_mixed, and a training goes on in it", "[programs][threads][bf16]") {
  const scratch_folder folder;
  const auto arguments = small_training(folder.file("text", small_text(8000)), folder / "run", 4);
  const outcome first = train(with(arguments, {"--precision", "bf16_mixed"}));
  INFO(first.err);
  REQUIRE(first.status == 0);
  const outcome more = train({"--out", folder / "run", "--resume", "--steps", "6"});
  INFO(more.err);
  REQUIRE(more.status == 0);
  CHECK(more.err.find("note: parameters") == std::string::npos);  // no difference of rules: still bf16
  CHECK(bytes_of(*gyre::latest(folder / "run", "step-") / "state.json").find("\"parameters\": \"BF16\"") != std::string::npos);
  const std::vector<std::string> speak{"--checkpoint", folder / "run", "--prompt", "the", "--steps", "3", "--max", "20"};
  for (const char* precision : {"bf16_mixed", "fp32"}) {
    const outcome spoken = generate(with(speak, {"--precision", precision}));
    INFO(spoken.err);
    CHECK(spoken.status == 0);
    CHECK_THAT(spoken.err, Catch::Contains("20 tokens"));
  }
  CHECK(generate(with(speak, {"--precision", "fp8"})).status == 1);
}

TEST_CASE("generate runs a model as it was trained: its mean steps, its scale of initial states", "[programs][threads]") {
  const scratch_folder folder;
  const auto arguments = small_training(folder.file("text", small_text(8000)), folder / "run", 3);
  REQUIRE(train(with(arguments, {"--mean-steps", "3", "--state-scale", "0"})).status == 0);
  const auto speak = [&](const std::string& seed, const std::vector<std::string>& more) {
    const outcome done = generate(with({"--checkpoint", folder / "run", "--prompt", "the", "--seed", seed}, more));
    INFO(done.err);
    REQUIRE(done.status == 0);
    return done;
  };
  CHECK_THAT(speak("1", {"--max", "5", "--show-steps"}).err, Catch::Contains("3 steps") && Catch::Contains(" 5\n"));
  CHECK(speak("1", {"--score", " sea"}).out == speak("2", {"--score", " sea"}).out);
  REQUIRE(train(with(arguments, {"--out", folder / "noisy"})).status == 0);
  const auto noisy = [&](const std::string& seed) {
    return generate({"--checkpoint", folder / "noisy", "--prompt", "the", "--score", " sea", "--seed", seed}).out;
  };
  CHECK(noisy("1") != noisy("2"));
}

TEST_CASE("generate scores continuations: parts add up to the whole", "[programs][threads]") {
  const scratch_folder folder;
  REQUIRE(train(small_training(folder.file("text", small_text(8000)), folder / "run", 6)).status == 0);
  const auto score = [&](const std::string& prompt, const std::string& continuation) {
    const outcome done =
        generate({"--checkpoint", folder / "run", "--prompt", prompt, "--score", continuation, "--steps", "2"});
    INFO(done.err);
    REQUIRE(done.status == 0);
    REQUIRE(done.out.rfind("log-likelihood ", 0) == 0);
    return std::stod(done.out.substr(15));
  };
  const double whole = score("the ", "sea was"), parts = score("the ", "sea") + score("the sea", " was");
  CHECK(whole < 0);
  // Seven values near -5 of float arithmetic, printed with six decimals.
  CHECK(std::abs(whole - parts) < 7 * 5 * 1e-5 + 2e-6);
}

TEST_CASE("generate refuses what is wrong in one sentence", "[programs][threads]") {
  const scratch_folder folder;
  REQUIRE(train(small_training(folder.file("text", small_text(8000)), folder / "run", 2)).status == 0);
  const auto refuses = [&](std::vector<std::string> arguments, const std::string& sentence) {
    const outcome done = generate(std::move(arguments));
    CHECK(done.status == 1);
    CHECK_THAT(done.err, Catch::Contains(sentence));
    CHECK(std::count(done.err.begin(), done.err.end(), '\n') == 1);
  };
  const std::string run = folder / "run";
  refuses({}, "no checkpoint is given");
  refuses({"--checkpoint", folder / "absent"}, "is no folder");
  refuses({"--checkpoint", folder / "."}, "holds no checkpoint");
  refuses({"--checkpoint", run, "--steps", "-1"}, "--steps is -1");
  refuses({"--checkpoint", run, "--steps", "2", "--exit", "0.1"}, "exclude each other");
  refuses({"--checkpoint", run, "--prompt", "x", "--temperature", "-1"}, "temperature is -1");
  refuses({"--checkpoint", run, "--prompt", "x", "--top-p", "2"}, "top_p is 2");
  refuses({"--checkpoint", run, "--prompt", std::string(257, 'x')}, "a prompt of 257 tokens exceeds the context of 256");
  refuses({"--checkpoint", run, "--prompt", "x", "--stop", ""}, "stop string 0 is empty");
  refuses({"--checkpoint", run, "--prompt", "x", "--score", ""}, "--score is empty");

  const auto checkpoint = *gyre::latest(run, "step-");
  const std::string good = bytes_of(checkpoint / "model.safetensors"), state = bytes_of(checkpoint / "state.json");
  const auto overwrite = [&](const char* name, const std::string& bytes) {
    std::ofstream(checkpoint / name, std::ios::binary) << bytes;
  };
  overwrite("model.safetensors", good.substr(0, good.size() / 2));
  refuses({"--checkpoint", run, "--prompt", "x"}, "model.safetensors");
  overwrite("model.safetensors", good);
  overwrite("state.json", state.substr(0, state.size() / 2));
  refuses({"--checkpoint", run, "--prompt", "x"}, "state.json");
  overwrite("state.json", R"({"data": "x"})");
  refuses({"--checkpoint", run, "--prompt", "x"}, "state.json: data: expected an object");
  std::string other = state;
  other.replace(other.find("huginn-prose"), 12, "failed-xxxxx");
  overwrite("state.json", other);
  refuses({"--checkpoint", run, "--prompt", "x"}, "no model is named 'failed-xxxxx'");
  other.replace(other.find("failed-xxxxx"), 12, "huginn-hops");
  overwrite("state.json", other);
  refuses({"--checkpoint", run, "--prompt", "x"}, "knows no text");
}
