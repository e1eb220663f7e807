// The loop of a training session, around a stand-in for the model that only keeps count.
#include "../../examples/support/session.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "scratch_folder.hpp"

using namespace examples;
using gyre_test::bytes_of;
using gyre_test::scratch_folder;
using gyre_test::small_text;

namespace {

/// "Learns" by adding up the tokens that it sees, so that another order or a repeated batch gives another number.
class counting_model final : public training {
 public:
  explicit counting_model(std::uint64_t total) { options_.total_steps = total; }

  gyre::depth_draw next_depth() const override { return {1, 2}; }
  void accumulate(const gyre::batch& rows) override {
    for (const gyre::token t : rows.inputs) sum = sum * 31 + static_cast<std::uint64_t>(t);
    tokens_ += rows.targets.size();
  }
  gyre::step_report update() override {
    gyre::require(steps_ + 1 != fail_at, "the loss is nan at step ", steps_ + 1);
    gyre::step_report report;
    report.step = ++steps_, report.loss = 3, report.depth = next_depth(), report.tokens = 8;
    report.seen.token_correlation = correlation;
    if (on_step) on_step(steps_);
    return report;
  }
  std::uint64_t steps() const override { return steps_; }
  std::uint64_t tokens_seen() const override { return tokens_; }
  const gyre::trainer_options& options() const override { return options_; }
  std::vector<gyre::evaluation> evaluate(std::span<const gyre::batch> rows, std::span<const int> depths,
                                         const std::function<bool()>& stop) const override {
    std::vector<gyre::evaluation> results;
    for (const int depth : depths) {
      if (stop && stop()) break;
      gyre::index tokens = 0;
      for (const gyre::batch& b : rows) tokens += static_cast<gyre::index>(b.targets.size());
      results.push_back({depth, depth == 1 ? loss_at_1 : 3.0, tokens});
    }
    return results;
  }
  std::filesystem::path save(const std::filesystem::path& run, const gyre::json& data) const override {
    std::string number = std::to_string(steps_);
    const auto folder = run / ("step-" + std::string(8 - number.size(), '0') + number);
    gyre::require(!std::filesystem::exists(folder), folder.string(), " is saved twice");
    std::filesystem::create_directories(folder);
    gyre::json state = gyre::json::object();
    state.set("data", data), state.set("sum", sum), state.set("step", steps_), state.set("tokens", tokens_);
    gyre::write_file(folder / "state.json", gyre::write_json(state));
    return folder;
  }
  gyre::resumed load(const std::filesystem::path& folder) override {
    const gyre::json state = gyre::parse_json(gyre::read_file(folder / "state.json"), "state");
    sum = state.find("sum")->uint64(), steps_ = state.find("step")->uint64(), tokens_ = state.find("tokens")->uint64();
    return {folder, steps_, *state.find("data"), {}};
  }
  int vocabulary() const override { return 257; }
  int context() const override { return 8; }
  int most_depth() const override { return deepest; }
  gyre::index parameters() const override { return 1; }
  double flops(gyre::index, gyre::index, gyre::depth_draw draw) const override { return draw.total(); }
  std::size_t plan(gyre::index, gyre::index) override { return 0; }

  std::uint64_t sum = 0, fail_at = 0;
  double correlation = 0, loss_at_1 = 3.3;
  int deepest = 3;
  std::function<void(std::uint64_t)> on_step;

 private:
  gyre::trainer_options options_;
  std::uint64_t steps_ = 0, tokens_ = 0;
};

struct text_folder {
  scratch_folder folder;
  std::string path = folder.file("text", small_text(3000));

  text_data data() const {
    text_data::options wanted;
    wanted.rows = 2, wanted.length = 8, wanted.hold_out = 200;
    return text_data({path}, wanted);
  }
  session_options options(const std::string& run) const {
    session_options o;
    o.folder = folder / run;
    o.stop = [] { return false; };
    o.terminal = &said;
    return o;
  }
  mutable std::ostringstream said;
};

std::vector<std::uint64_t> logged_steps(const std::filesystem::path& run) {
  training_log log(run / "log.jsonl", std::uint64_t{1} << 40);
  std::vector<std::uint64_t> steps;
  for (const step_record& r : log.records().steps) steps.push_back(r.report.step);
  return steps;
}
std::vector<std::uint64_t> counted_to(std::uint64_t last) {
  std::vector<std::uint64_t> steps;
  for (std::uint64_t n = 1; n <= last; ++n) steps.push_back(n);
  return steps;
}

}  // namespace

TEST_CASE("a session that is stopped and resumed sees the same data and logs every step once", "[examples]") {
  const text_folder text;
  counting_model whole(40);
  {
    text_data data = text.data();
    const session_result result = run_session(whole, data, text.options("whole"));
    CHECK_FALSE(result.stopped);
    CHECK(result.last.size() == 7);
    CHECK(result.records.steps.size() == 40);
    CHECK(result.checkpoint.filename() == "step-00000040");
  }
  counting_model first(40);
  {
    text_data data = text.data();
    session_options o = text.options("parts");
    o.stop = [&] { return first.steps() >= 17; };
    o.resume_command = "train --resume";
    const session_result result = run_session(first, data, o);
    CHECK(result.stopped);
    CHECK(result.last.empty());
    CHECK(result.checkpoint.filename() == "step-00000017");
    CHECK_THAT(text.said.str(), Catch::Contains("stopped after step 17 of 40, saved in " + result.checkpoint.string() +
                                                "\ngo on with: train --resume"));
  }
  // Two steps more that no checkpoint has seen, and a line that was cut: what a killed program leaves.
  {
    training_log log(text.folder / "parts" / "log.jsonl", 17);
    step_record lost;
    lost.report.step = 18;
    log.add(lost);
  }
  std::ofstream(text.folder / "parts" / "log.jsonl", std::ios::app) << "{\"step\":19,\"los";
  counting_model second(40);
  text_data data = text.data();
  session_options o = text.options("parts");
  o.resume = true;
  const session_result result = run_session(second, data, o);
  CHECK_THAT(text.said.str(), Catch::Contains("going on from step 17 of 40"));
  CHECK_FALSE(result.stopped);
  CHECK(second.sum == whole.sum);
  CHECK(result.records.steps.size() == 40);
  CHECK(logged_steps(text.folder / "parts") == counted_to(40));
  CHECK(result.seconds >= result.records.steps[16].seconds);

  // Resumed once more there is nothing to do, and the last validation is not repeated.
  counting_model third(40);
  text_data again = text.data();
  const session_result idle = run_session(third, again, o);
  CHECK(third.sum == whole.sum);
  CHECK(idle.last.size() == 7);
  CHECK(std::count_if(idle.records.validations.begin(), idle.records.validations.end(),
                      [](const validation_record& v) { return v.purpose == "last"; }) == 1);
}

TEST_CASE("a session that is stopped while it validates has saved its last step, and validates when it is resumed",
          "[examples]") {
  const text_folder text;
  counting_model model(10);
  text_data data = text.data();
  session_options o = text.options("run");
  int asked = 0;
  o.stop = [&] { return model.steps() == 10 && ++asked > 4; };  // ten steps, then within the validation
  const session_result stopped = run_session(model, data, o);
  CHECK((stopped.stopped && stopped.last.empty()));
  CHECK(stopped.checkpoint.filename() == "step-00000010");
  counting_model again(10);
  text_data data_again = text.data();
  session_options resumed = text.options("run");
  resumed.resume = true;
  const session_result whole = run_session(again, data_again, resumed);
  CHECK_FALSE(whole.stopped);
  CHECK(whole.last.size() == 7);
}

TEST_CASE("checkpoints come every so many steps", "[examples]") {
  const text_folder text;
  counting_model model(20);
  std::vector<std::uint64_t> before;
  model.on_step = [&](std::uint64_t) {
    const auto latest = gyre::latest_checkpoint(text.folder / "run");
    before.push_back(latest ? std::stoull(latest->filename().string().substr(5)) : 0);
  };
  text_data data = text.data();
  session_options o = text.options("run");
  o.save_steps = 6;
  run_session(model, data, o);
  CHECK(before == std::vector<std::uint64_t>{0, 0, 0, 0, 0, 0, 6, 6, 6, 6, 6, 6, 12, 12, 12, 12, 12, 12, 18, 18});
}

TEST_CASE("an error of the trainer ends the session and names the last checkpoint", "[examples]") {
  const text_folder text;
  counting_model model(20);
  model.fail_at = 9;
  text_data data = text.data();
  session_options o = text.options("run");
  o.save_steps = 4;
  CHECK_THROWS_WITH(run_session(model, data, o), Catch::Contains("the loss is nan at step 9") &&
                                                     Catch::Contains("The last checkpoint is") &&
                                                     Catch::Contains("step-00000008"));
  CHECK(gyre::latest_checkpoint(text.folder / "run")->filename() == "step-00000008");
}

TEST_CASE("folders that do not fit to what is asked are refused", "[examples]") {
  const text_folder text;
  counting_model model(5);
  text_data data = text.data();
  session_options o = text.options("run");
  o.resume = true;
  CHECK_THROWS_WITH(run_session(model, data, o), Catch::Contains("holds no checkpoint to resume from"));
  o.resume = false;
  run_session(model, data, o);
  counting_model other(5);
  CHECK_THROWS_WITH(run_session(other, data, o), Catch::Contains("holds a training already (step-00000005)"));
  o.resume = true;
  text_data::options wanted;
  wanted.rows = 2, wanted.length = 8;
  text_data changed({text.folder.file("changed", small_text(2999))}, wanted);
  CHECK_THROWS_WITH(run_session(other, changed, o), Catch::Contains("the texts must be the same"));
}

TEST_CASE("two trainings do not share a folder", "[examples]") {
  const text_folder text;
  counting_model model(5), other(5);
  text_data data = text.data(), others = text.data();
  session_options o = text.options("run");
  {
    session first(model, data, o);
    CHECK_THROWS_WITH(run_session(other, others, o), Catch::Contains("run is in use by another training"));
    first.run();
    o.resume = true;
    CHECK_THROWS_WITH(run_session(other, others, o), Catch::Contains("run is in use by another training"));
  }
  CHECK(std::filesystem::exists(text.folder / "run" / "lock"));
  CHECK(run_session(other, others, o).records.steps.size() == 5);
}

TEST_CASE("watches name a failure once, also over a resumption", "[examples]") {
  const text_folder text;
  const auto named = [](const training_records& records) {
    std::vector<std::string> all;
    for (const failure_record& f : records.failures) all.push_back(f.failure);
    return all;
  };
  SECTION("collapse: and then the other failure is not looked for") {
    counting_model model(80);
    model.correlation = 0.99, model.loss_at_1 = 3;
    text_data data = text.data();
    session_options o = text.options("run");
    o.stop = [&] { return model.steps() >= 70; };
    CHECK(named(run_session(model, data, o).records) == std::vector<std::string>{"collapse"});
    CHECK_THAT(text.said.str(), Catch::Contains("WARNING step 50: hidden-state collapse"));
    counting_model again(80);
    again.correlation = 0.99, again.loss_at_1 = 3;
    text_data rest = text.data();
    o.resume = true, o.stop = nullptr;
    CHECK(named(run_session(again, rest, o).records) == std::vector<std::string>{"collapse"});
  }
  SECTION("ignored state, within 200 steps") {
    counting_model model(400);
    model.loss_at_1 = 3.01;
    text_data data = text.data();
    const training_records records = run_session(model, data, text.options("run")).records;
    CHECK(named(records) == std::vector<std::string>{"ignored-state"});
    CHECK(records.failures.at(0).step == 200);  // the fourth look; the first one is the first that shows it
  }
  SECTION("a look that shows it now and then is no failure") {
    counting_model model(400);
    model.on_step = [&](std::uint64_t step) { model.loss_at_1 = step % 100 == 0 ? 3.0 : 3.1; };
    text_data data = text.data();
    CHECK(named(run_session(model, data, text.options("run")).records).empty());
  }
  SECTION("looks before a stop count after it") {
    counting_model model(400);
    model.loss_at_1 = 3.01;
    text_data data = text.data();
    session_options o = text.options("run");
    o.stop = [&] { return model.steps() >= 170; };
    CHECK(named(run_session(model, data, o).records).empty());
    counting_model again(400);
    again.loss_at_1 = 3.01;
    text_data rest = text.data();
    o.resume = true, o.stop = nullptr;
    const training_records records = run_session(again, rest, o).records;
    CHECK(records.failures.at(0).step == 200);
  }
  SECTION("a model that only ever runs one step has no state to ignore") {
    counting_model model(400);
    model.loss_at_1 = 3, model.deepest = 1;
    text_data data = text.data();
    CHECK(named(run_session(model, data, text.options("run")).records).empty());
  }
  SECTION("silence") {
    counting_model model(400);
    text_data data = text.data();
    CHECK(named(run_session(model, data, text.options("run")).records).empty());
  }
}
