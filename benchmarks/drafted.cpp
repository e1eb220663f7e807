// Drafted decoding of the model that docs/performance.md reports, trained on text first, since how often drafts are right depends
// on what a model has learnt. Arguments: steps, draft steps (0: none), whether greedy (else temperature 0.7, top_p 0.95).
//
//   GYRE_TEXT=novels.txt GYRE_RUN=folder benchmark_drafted
//
// The first run trains 400 steps of 8 x 256 bytes, without the last 200,000, and leaves the checkpoint in GYRE_RUN for the others.
// Items are tokens, 128 after each of 16 prompts of 16 bytes from the text's end; accepted: share of drafts that were right.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include <gyre/gyre.hpp>

namespace {

constexpr gyre::dims sizes{.vocab = 4096, .width = 256, .heads = 4, .mlp = 896, .context = 1024, .mean_steps = 8};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::prelude<Block>, gyre::recurrent<gyre::stack<2, Block>>, gyre::coda<Block>> {};
using network = gyre::network<Model, gyre::cpu, gyre::fp32>;

constexpr gyre::index held_out = 200'000, prompt_length = 16, new_tokens = 128;

struct trained_model {
  std::vector<gyre::token> text;
  network net{gyre::cpu{2}, gyre::seed{1}, false};

  trained_model(const std::string& file, const std::string& run) : text(gyre::bytes_of_file(file)) {
    gyre::require(static_cast<gyre::index>(text.size()) > 4 * held_out, file, " is too short");
    if (const auto checkpoint = gyre::latest_checkpoint(run))
      gyre::load_weights(net, *checkpoint);
    else
      train(run);
  }
  void train(const std::string& run) {
    gyre::trainer trainer(net, gyre::adamw{.lr = 2e-3, .decay = 0.05}, gyre::lognormal_poisson{.mean = 8, .backprop = 4},
                          gyre::warmup_constant_cooldown{.warm_up = 40, .cooldown_start = 0.5, .floor = 0.02},
                          {.total_steps = 400});
    for (const gyre::batch& rows :
         gyre::pack(std::span<const gyre::token>(text).first(text.size() - held_out), /*rows=*/8, /*length=*/256)) {
      const auto report = trainer.step(rows);
      if (trainer.steps() % 20 == 0) std::cerr << "step " << trainer.steps() << " loss " << report.loss << '\n';
      if (trainer.finished()) break;
    }
    gyre::save_checkpoint(trainer, run, {});
  }
};

void drafted(benchmark::State& state) {
  const char *file = std::getenv("GYRE_TEXT"), *run = std::getenv("GYRE_RUN");
  if (file == nullptr || run == nullptr) return state.SkipWithError("set GYRE_TEXT to a text file and GYRE_RUN to a folder");
  static const auto model = std::make_unique<const trained_model>(file, run);
  gyre::generator generator(model->net);
  gyre::generation_request request;
  request.exit = static_cast<int>(state.range(0)), request.draft_steps = static_cast<int>(state.range(1));
  request.choose.greedy = state.range(2) != 0, request.choose.temperature = 0.7f, request.choose.top_p = 0.95f;
  request.max_new = new_tokens + 1;
  std::uint64_t number = 0, judged = 0, accepted = 0;
  for (auto _ : state) {
    state.PauseTiming();
    request.key = number++ % 16;
    const std::size_t at = model->text.size() - 190'000 + 11'000 * static_cast<std::size_t>(request.key);
    request.prompt = std::span<const gyre::token>(model->text).subspan(at, prompt_length);
    const auto id = generator.start(request);
    generator.advance();
    state.ResumeTiming();
    generator.run();
    const gyre::generation result = generator.take(id);
    judged += result.drafted, accepted += result.accepted;
  }
  state.SetItemsProcessed(static_cast<gyre::index>(state.iterations()) * new_tokens);
  state.counters["accepted"] = judged == 0 ? 0.0 : static_cast<double>(accepted) / static_cast<double>(judged);
}

}  // namespace

BENCHMARK(drafted)
    ->ArgNames({"steps", "draft", "greedy"})
    ->ArgsProduct({{8}, {0, 1, 2, 3, 4}, {1, 0}})
    ->Iterations(16)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
