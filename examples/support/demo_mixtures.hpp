// `demo mixtures`: depth-recurrent mixtures with and without depth attention and their layered baseline learn a task of reasoning.
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "arguments.hpp"
#include "mixture_report.hpp"
#include "task_data.hpp"
#include "time_budget.hpp"

namespace examples {

/// What the demo trains, fixed at its first start, so that a later one goes on with it.
struct mixture_plan {
  std::string task;
  double minutes = 0, learning_rate = 0;
  std::uint64_t seed = 0, steps = 0;
  gyre::index rows = 16, length = 0;

  std::unique_ptr<task_data> data() const { return make_task(task, rows, length, gyre::seed{seed}); }
  mixture_rules rules() const {
    return {gyre::adamw{.lr = learning_rate, .decay = 0.01},
            any_schedule{gyre::warmup_constant_cooldown{.warm_up = 100, .cooldown_start = 0.7, .floor = 0.05}},
            gyre::trainer_options{.seed = gyre::seed{seed}, .total_steps = steps}};
  }
  gyre::json settings() const {
    gyre::json out = gyre::json::object();
    out.set("task", task), out.set("minutes", minutes), out.set("lr", learning_rate), out.set("seed", seed);
    out.set("rows", rows), out.set("length", length);
    return out;
  }
};

namespace detail {

/// Takes the number of steps from the plan in `folder`; false if there is none. Throws if it is another plan.
inline bool recall(mixture_plan& plan, const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "plan.json";
  if (!std::filesystem::exists(file)) return false;
  const gyre::json root = gyre::parse_json(gyre::read_file(file), file.string());
  const gyre::json_field kept(root, file.string());
  gyre::require(kept["settings"].value() == plan.settings(), folder.string(), " holds a demo with other settings (",
                gyre::write_json(kept["settings"].value()), "); use --fresh to start anew, or another --out");
  plan.steps = kept["steps"].uint64();
  return true;
}
inline void keep(const mixture_plan& plan, const std::filesystem::path& folder) {
  gyre::json out = gyre::json::object();
  out.set("settings", plan.settings()), out.set("steps", plan.steps);
  gyre::write_file_atomically(folder / "plan.json", gyre::write_json(out));
}

/// Seconds of a step of one model, by steps of a training that is thrown away; 0 if it was stopped.
inline double seconds_of_step(const std::string& name, const gyre::cpu& device, mixture_plan plan, double measuring) {
  plan.steps = std::uint64_t{1} << 40;
  const auto data = plan.data();
  const auto scratch = make_mixture(name, device, plan.rules());
  stopwatch watch;
  int steps = -1;  // the first takes memory and wakes caches
  while (steps < 2 || watch.seconds() < measuring) {
    if (interrupt_guard::requested()) return 0;
    scratch->accumulate(data->next(scratch->steps() + 1, 0, scratch->steps_of_use()));
    scratch->update();
    if (++steps == 0) watch = stopwatch();
  }
  return watch.seconds() / steps;
}

/// Trains one model, or goes on with it; false if it was stopped.
inline bool train_mixture(mixture_run& run, const mixture_plan& plan, const gyre::cpu& device,
                          const std::filesystem::path& folder, gyre::index examined) {
  session_options options;
  options.folder = folder, options.name = mixture_title(run.name), options.resume_command = "./run demo mixtures";
  options.resume = gyre::latest_checkpoint(folder).has_value();
  options.validate_steps = (std::max)(std::uint64_t{1}, plan.steps / 40);
  options.validation_tokens = (std::min)(gyre::index{2048}, examined);
  options.last_tokens = (std::min)(gyre::index{8192}, examined), options.watch_steps = 0, options.save_seconds = 30;
  options.settings = plan.settings();
  run.model = make_mixture(run.name, device, plan.rules());
  options.depths = {run.model->steps_of_use()};
  const auto data = plan.data();
  run.result = run_session(*run.model, *data, std::move(options));
  return !run.result.stopped;
}

}  // namespace detail

inline int demo_mixtures(arguments& args) {
  mixture_plan plan;
  plan.task = args.choice("task", task_names(), "swaps", "what to learn; k-hops want more tokens, permutations many more");
  plan.length = args.number("length", gyre::index{24}, "tokens of a row of swaps or permutations; k-hops have 48");
  plan.minutes = args.number("minutes", 10.0, "time of all three trainings together");
  plan.learning_rate = args.number("lr", 2e-3, "learning rate");
  plan.seed = args.number<std::uint64_t>("seed", 0, "seed of everything random");
  const int threads = args.number("threads", 0, "threads; 0: all cores");
  const std::string out = args.text("out", "build/demo/mixtures", "folder of checkpoints and report");
  const auto examined = args.number("examine-tokens", gyre::index{73000},
                                    "held-out tokens on which experts and depths are watched; the most of a validation too");
  const bool fresh = args.flag("fresh", "removes an earlier demo in --out and starts anew; without it, it goes on");
  if (!args.ready()) return 0;
  gyre::require(plan.minutes > 0 && plan.minutes <= most_minutes, "demo: --minutes is ", plan.minutes,
                "; it must be more than 0 and at most ", most_minutes);
  plan.length = plan.data()->length();
  gyre::require(examined >= plan.length, "demo: --examine-tokens is ", examined, "; a row has ", plan.length);
  const gyre::cpu device = threads > 0 ? gyre::cpu(threads) : gyre::cpu{};
  const std::filesystem::path folder = out;
  std::filesystem::create_directories(folder);
  const std::vector<std::string> names{"attending-8", "recurrent-8", "layered-8"};
  if (fresh) {
    std::filesystem::remove(folder / "plan.json");
    for (const std::string& name : names) std::filesystem::remove_all(folder / name);
  }

  mixture_comparison all{plan.task, plan.rows, plan.length, plan.learning_rate, plan.seed, {}};
  std::cout << "Three mixtures of width 64 and 8 layers, matched within 2% in parameters and FLOPs, learn " << all.task_text()
            << ".\n"
            << clock_text(60 * plan.minutes) << " of training in all, on " << device.threads() << " threads.\n"
            << std::flush;
  const interrupt_guard guard;
  if (!detail::recall(plan, folder)) {
    double together = 0;  // seconds of a step of each
    for (const std::string& name : names) {
      const double seconds = detail::seconds_of_step(name, device, plan, 60 * plan.minutes / 200);
      if (seconds == 0) {
        std::cerr << "stopped while measuring the speed\n";
        return 130;
      }
      together += seconds;
    }
    plan.steps = (std::max)(std::uint64_t{1}, static_cast<std::uint64_t>(0.985 * 60 * plan.minutes / together));
    detail::keep(plan, folder);
    std::cout << plan.steps << " steps of each fit into that\n" << std::flush;
  }
  for (const std::string& name : names) {
    mixture_run run;
    run.name = name;
    if (!detail::train_mixture(run, plan, device, folder / name, examined)) return 130;
    // By default so many rows that an expert is hit a thousand times at each depth if loads are even.
    std::cerr << "watching experts and depths\n";
    const auto data = plan.data();
    run.seen = run.model->examine(data->held_out_rows(examined / plan.length, 1));
    run.right = *run.model->accuracy_on(data->held_out_rows((std::min)(gyre::index{16384}, examined) / plan.length, 2),
                                        run.model->steps_of_use());
    all.runs.push_back(std::move(run));
    if (interrupt_guard::requested()) {
      std::cerr << "stopped; what is trained is saved, and the same command goes on\n";
      return 130;
    }
  }

  std::printf("\n  model        parameters   right   at the end   exp(entropy) of experts a depth\n");
  for (const mixture_run& run : all.runs)
    std::printf("  %-12s %10s   %.3f   %10.3f   %.1f of %d\n", mixture_title(run.name).c_str(),
                thousands(static_cast<std::uint64_t>(run.model->parameters())).c_str(), run.right.all, run.right.last,
                run.seen.experts.per_depth_diversity, static_cast<int>(run.seen.experts.experts));
  const std::string path = (folder / "report.html").string();
  write_report(mixture_report(all), path);
  std::cout << "\nreport: " << path << '\n';
  return 0;
}

}  // namespace examples
