// `demo`: a small Huginn learns English prose with a random number of steps, beside a twin that always runs one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "catalogue_training.hpp"
#include "compressed.hpp"
#include "prose_examination.hpp"
#include "prose_report.hpp"
#include "session.hpp"
#include "settings.hpp"
#include "time_budget.hpp"
#include "training.hpp"

namespace examples {

/// True when the user has interrupted, which it then tells.
inline bool stopped_after_training() {
  if (!interrupt_guard::requested()) return false;
  std::cerr << "\nstopped; what is trained is saved, and the same command goes on\n";
  return true;
}

/// Trains one of the two models, or goes on with it, within `minutes`; false if it was stopped.
inline bool train_prose(prose_run& run, text_data& data, const gyre::cpu& device, double minutes, gyre::seed seed,
                        const std::filesystem::path& folder) {
  const settings prose = recipe("main");
  const auto made = [&](std::uint64_t total) {
    return std::make_unique<prose_run::training_type>(
        device, gyre::adamw{.lr = prose.lr, .decay = prose.decay}, run.depth, make_schedule(prose),
        gyre::trainer_options{.seed = seed, .total_steps = total, .clip = prose.clip});
  };
  session_options options;
  options.folder = folder, options.name = run.name, options.resume_command = "./run demo";
  options.validate_steps = 250, options.depths = {1, 2, 4, 8, 16, 32}, options.validation_tokens = 8192;
  if (run.depth.most_draw().total() == 1) options.watch_steps = 0;  // it cannot use more steps, and need not be warned of it
  std::uint64_t total = 0;
  if (const auto latest = gyre::latest_checkpoint(folder)) {
    const gyre::json data_there = checkpoint_data(*latest);
    const gyre::json_field kept(data_there, latest->string());
    gyre::require(kept["settings"]["minutes"].real() == minutes && kept["settings"]["seed"].uint64() == seed.value,
                  folder.string(), " holds a training with other settings; use --fresh to start anew, or another --out");
    total = kept["settings"]["total"].uint64();
    options.resume = true;
  } else {
    const auto scratch = made(1 << 20);
    const auto rule_of = [&](std::uint64_t) { return run.depth; };
    total = steps_within(60 * minutes, *scratch, data, 1, rule_of, interrupt_guard::requested).steps;
    if (total == 0) {
      std::cerr << "stopped while measuring the speed\n";
      return false;
    }
    std::cout << run.name << ": " << total << " steps fit into " << clock_text(60 * minutes) << '\n';
  }
  options.settings.set("minutes", minutes), options.settings.set("seed", seed.value), options.settings.set("total", total);
  run.model = made(total);
  run.result = run_session(*run.model, data, std::move(options));
  return !run.result.stopped;
}

/// What a trained model is asked beside its losses; false if it was stopped, which is looked for between the questions.
inline bool examine_prose(prose_demo& demo, prose_run& run, text_data& data, const std::string& prompt, gyre::seed seed) {
  if (stopped_after_training()) return false;
  if (&run == &demo.recurrent) demo.exits = exits_on(run.model->net(), data.held_out(8, 0), demo.exit_rule, 24);
  for (int r : {1, 16}) {
    if (stopped_after_training()) return false;
    run.spoken.push_back({r, speak(run.model->net(), prompt, r, seed)});
  }
  return !stopped_after_training();
}

inline int demo_prose(arguments& args) {
  auto texts = args.texts("text", "text file to learn from; `./run demo` gives six English novels");
  const std::string out = args.text("out", "build/demo/prose", "folder of checkpoints and report");
  const double minutes = args.number("minutes", 4.0, "training time of each of the two models");
  const auto seed_number = args.number<std::uint64_t>("seed", 0, "seed of everything random");
  const int threads = args.number("threads", 0, "threads; 0: all cores");
  const bool fresh = args.flag("fresh", "removes an earlier training in --out and starts anew; without it, it goes on");
  const std::string prompt = args.text("prompt", "Emma could not ", "what the models speak after");
  if (!args.ready()) return 0;
  gyre::require(!texts.empty(), "demo: give a text file with --text");
  const gyre::cpu device = threads > 0 ? gyre::cpu(threads) : gyre::cpu{};
  const std::filesystem::path folder = out;
  std::filesystem::create_directories(folder);

  prose_demo demo;
  const settings prose = recipe("main");
  demo.recurrent.name = "random r", demo.recurrent.depth = make_depth(prose, 0);
  demo.single.name = "fixed r=1", demo.single.depth = any_depth{gyre::fixed_depth{1}};
  text_data::options reading;
  reading.rows = prose.rows, reading.length = prose.length, reading.seed = gyre::seed{seed_number};
  reading.hold_out = static_cast<std::size_t>(prose.hold_out);

  std::cout << "Two models of " << prose_model::parameter_count << " parameters, (1, 2, 1) layers of width " << prose_dims.width
            << ", " << clock_text(60 * minutes) << " of training each on " << device.threads() << " threads.\n";
  const interrupt_guard guard;
  for (prose_run* run : {&demo.recurrent, &demo.single}) {
    const std::filesystem::path own = folder / (run == &demo.recurrent ? "random-r" : "fixed-r1");
    if (fresh) std::filesystem::remove_all(own);
    text_data data(texts, reading);
    demo.train_bytes = data.train_bytes(), demo.held_bytes = data.held_bytes();
    if (!train_prose(*run, data, device, minutes, gyre::seed{seed_number}, own)) return 130;
    if (!examine_prose(demo, *run, data, prompt, gyre::seed{seed_number})) return 130;
  }
  demo.prompt = prompt;

  std::string all;
  for (const std::string& path : texts) all += gyre::read_file(path);
  demo.xz = xz_on(all, demo.held_bytes, folder);
  if (stopped_after_training()) return 130;

  print_prose(demo);
  const std::string path = (folder / "report.html").string();
  write_report(prose_report(demo), path);
  std::cout << "\nreport: " << path << '\n';
  return 0;
}

}  // namespace examples
