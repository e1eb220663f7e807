// A run resumed from any of its checkpoints is the uninterrupted run, bit for bit.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include <gyre/train/checkpoint.hpp>
#include <gyre/train/pack.hpp>

#include "io/faulty_files.hpp"
#include "io/support.hpp"
#include "train/support.hpp"

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t total = 12;

std::vector<gyre::token> text() {
  std::vector<gyre::token> tokens;
  for (int i = 0; i < 150; ++i) tokens.push_back(i * i % 11);
  return tokens;
}
gyre::json json_of(gyre::data_position at) {
  gyre::json out = gyre::json::object();
  out.set("epoch", at.epoch);
  out.set("row", at.row);
  return out;
}

// A training as a program would hold it: its data, its trainer, its checkpoints.
template <class P, class Rule>
struct training {
  gyre_test::reference_network<gyre_test::Tiny, P> net{gyre::reference{}, gyre::seed{1}};
  gyre::trainer<decltype(net), Rule, gyre::curriculum<gyre::lognormal_poisson>, gyre::warmup_cosine> trainer;
  gyre::data_position position;

  explicit training(Rule rule)
      : trainer(net, rule, gyre::curriculum{gyre::lognormal_poisson{.mean = 5, .backprop = 2}, total},
                gyre::warmup_cosine{.warm_up = 3}, {.seed = gyre::seed{8}, .total_steps = total}) {}

  // To the end; keeps a copy of every checkpoint, of which the run itself keeps two.
  void go_on(const fs::path& run, const fs::path& copies) {
    gyre::batches source = gyre::pack(text(), 2, 7, {.epochs = 0, .start = position});
    trainer.run(source, [&](const gyre::step_report&) {
      const fs::path saved = gyre::save_checkpoint(trainer, run, json_of(source.position()), gyre_test::unsynced_files());
      if (!copies.empty()) fs::copy(saved, copies / saved.filename(), fs::copy_options::recursive);
    });
  }
  void load(const fs::path& folder) {
    const gyre::resumed loaded = gyre::load_checkpoint(trainer, folder);
    const gyre::json_field data(loaded.data, "data");
    position = {data["epoch"].uint64(), static_cast<gyre::index>(data["row"].int64())};
    CHECK(loaded.differences.empty());
    CHECK(loaded.folder == folder);
    CHECK(loaded.step == trainer.steps());
  }
};

template <class P, class Rule>
void check_resuming(Rule rule) {
  const gyre_test::scratch_folder folder;
  fs::create_directories(folder / "copies");
  training<P, Rule> whole(rule);
  whole.go_on(folder / "whole", folder / "copies");
  REQUIRE(whole.trainer.steps() == total);
  CHECK(gyre::complete_folders(folder / "whole", "step-").size() == 2);
  const auto weights = gyre_test::copy_of(whole.net);
  const auto moments = gyre_test::moments_of(whole.trainer);

  const auto saved = gyre::complete_folders(folder / "copies", "step-");
  REQUIRE(saved.size() == total);
  for (const gyre::numbered_folder& from : saved) {
    CAPTURE(from.number);
    training<P, Rule> resumed(rule);
    for (auto& w : resumed.net.values()) w = 7;  // nothing of it may be left
    resumed.load(from.path);
    CHECK(resumed.trainer.steps() == from.number);
    resumed.go_on(folder / ("resumed-" + std::to_string(from.number)), {});
    CHECK(gyre_test::copy_of(resumed.net) == weights);
    CHECK(gyre_test::moments_of(resumed.trainer) == moments);
    CHECK(resumed.trainer.rows_seen() == whole.trainer.rows_seen());
    CHECK(resumed.trainer.tokens_seen() == whole.trainer.tokens_seen());
  }
}

}  // namespace

TEST_CASE("resumed is uninterrupted: adamw, float", "[checkpoint]") { check_resuming<gyre::fp32>(gyre::adamw{.lr = 0.02}); }
TEST_CASE("resumed is uninterrupted: huginn_adam from a running start, float", "[checkpoint]") {
  check_resuming<gyre::fp32>(gyre::huginn_adam{.lr = 0.02, .running_start = true});
}
TEST_CASE("resumed is uninterrupted: muon, float", "[checkpoint]") {
  check_resuming<gyre::fp32>(gyre::muon{.lr = 0.02, .others = {.lr = 0.01}});
}

TEST_CASE("resume_latest takes the newest checkpoint, or says that there is none", "[checkpoint]") {
  const gyre_test::scratch_folder folder;
  training<gyre::fp32, gyre::adamw> first(gyre::adamw{}), second(gyre::adamw{});
  CHECK_FALSE(gyre::resume_latest(first.trainer, folder / "none"));
  first.go_on(folder / "run", {});
  const auto loaded = gyre::resume_latest(second.trainer, folder / "run");
  REQUIRE(loaded);
  CHECK(loaded->step == total);
  CHECK(loaded->folder == folder / "run" / "step-00000012");
  CHECK(gyre_test::copy_of(second.net) == gyre_test::copy_of(first.net));
}
