// Kills: a training that saves at every step is killed at random moments, again and again. Each time it goes on from the latest
// complete checkpoint, and the weights at its end are those of a training that was never touched.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include <gyre/model/description.hpp>
#include <gyre/train/checkpoint.hpp>
#include <gyre/train/pack.hpp>

#include "io/support.hpp"
#include "train/support.hpp"

namespace fs = std::filesystem;

namespace {

// Large enough that a step's time goes into computing and saving alike.
inline constexpr gyre::dims sizes{.vocab = 11, .width = 48, .heads = 4, .mlp = 96, .context = 8, .mean_steps = 4};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::recurrent<Block>> {};
constexpr std::uint64_t total = 40;

struct training {
  gyre::network<Model, gyre::reference, gyre::fp32> net{gyre::reference{}, gyre::seed{1}};
  gyre::trainer<decltype(net), gyre::huginn_adam, gyre::lognormal_poisson> trainer{
      net, gyre::huginn_adam{.lr = 0.01}, gyre::lognormal_poisson{.mean = 3, .backprop = 2}, {.total_steps = total}};

  // Goes on from the latest checkpoint of the run, if there is one, to the end. Saves at every step where asked.
  void go_on(const fs::path& run, bool saving) {
    gyre::reading how{.epochs = 0};
    if (const auto loaded = gyre::resume_latest(trainer, run)) {
      const gyre::json_field at(loaded->data, "data");
      how.start = {at["epoch"].uint64(), static_cast<gyre::index>(at["row"].int64())};
    }
    std::vector<gyre::token> text;
    for (int i = 0; i < 300; ++i) text.push_back(i * i % 11);
    gyre::batches source = gyre::pack(text, 1, 5, how);
    trainer.run(source, [&](const gyre::step_report&) {
      if (!saving) return;
      gyre::json at = gyre::json::object();
      at.set("epoch", source.position().epoch);
      at.set("row", source.position().row);
      gyre::save_checkpoint(trainer, run, at);
    });
  }
  std::uint64_t hash() const {
    const auto bytes = std::as_bytes(net.values());
    return gyre::detail::fnv1a({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
};

int temporaries_in(const fs::path& run) {
  int count = 0;
  if (fs::exists(run))
    for (const auto& entry : fs::directory_iterator(run))
      count += entry.path().filename().string().find(".tmp-") != std::string::npos;
  return count;
}

/// The last checkpoint's number, as its folder spells it.
std::string padded_total() {
  const std::string digits = std::to_string(total);
  return std::string(8 - digits.size(), '0') + digits;
}

}  // namespace

TEST_CASE("100 kills while saving at every step: the finished run has the weights of the uninterrupted one",
          "[checkpoint][kills][slow]") {
  const gyre_test::scratch_folder folder;
  training uninterrupted;
  uninterrupted.go_on(folder / "nowhere", false);
  const std::uint64_t expected = uninterrupted.hash();

  // How long a child needs for its start and a few steps.
  const auto begin = std::chrono::steady_clock::now();
  training().go_on(folder / "timed", true);
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
  const auto longest = static_cast<std::uint64_t>(whole / static_cast<long>(total) * 6 + 2000);

  std::mt19937_64 random(11);
  int kills = 0, left_behind = 0, runs_finished = 0, resumed_runs = 0;
  // The share of the time that a save takes differs between machines: go on until twenty left a temporary.
  const auto enough = [&] { return kills >= 1000 || (kills >= 100 && left_behind >= 20); };
  for (int number = 0; !enough(); ++number) {
    const fs::path run = folder / ("run-" + std::to_string(number));
    for (bool done = false; !done;) {
      const bool let_live = enough();
      // A save removes what killed ones left. A run that was killed after its last rename saves no more.
      const auto before = gyre::latest_checkpoint(run);
      const bool saves = !before || before->filename().string().substr(5) != padded_total();
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        int result = 1;
        try {
          training again;
          again.go_on(run, true);
          result = again.hash() == expected ? 0 : 2;
        } catch (...) {
        }
        ::_exit(result);
      }
      if (!let_live) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % longest));
        ::kill(child, SIGKILL);
      }
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      if (WIFSIGNALED(status)) {
        REQUIRE(WTERMSIG(status) == SIGKILL);
        ++kills;
        left_behind += temporaries_in(run) > 0;
        if (const auto latest = gyre::latest_checkpoint(run)) {
          training probe;
          CHECK(gyre::load_checkpoint(probe.trainer, *latest).step > 0);
          ++resumed_runs;
        }
      } else {
        REQUIRE(WIFEXITED(status));
        CAPTURE(number, kills);
        CHECK(WEXITSTATUS(status) == 0);  // 2: other weights; 1: an error
        done = true;
        ++runs_finished;
        if (saves) CHECK(temporaries_in(run) == 0);
        training probe;
        REQUIRE(gyre::resume_latest(probe.trainer, run));
        CHECK(probe.trainer.steps() == total);
        CHECK(probe.hash() == expected);
      }
    }
    fs::remove_all(run);
  }
  CHECK(left_behind >= 20);
  CHECK(runs_finished > 0);
  WARN(kills << " kills at random moments: " << left_behind << " left a temporary, " << resumed_runs
             << " left a checkpoint to go on from, " << runs_finished << " runs finished");
}
