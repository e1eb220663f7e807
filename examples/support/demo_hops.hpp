// `demo hops`: a model learns to follow pointers, one hop a recurrence step, and is asked for more hops than it was trained on.
#pragma once

#include <cstdio>
#include <filesystem>
#include <iostream>

#include "arguments.hpp"
#include "hops.hpp"
#include "report.hpp"
#include "session_text.hpp"
#include "terminal.hpp"

namespace examples {

inline int demo_hops(arguments& args) {
  const auto seed = args.number<std::uint64_t>("seed", 0, "seed of weights, depths and permutations");
  const int threads = args.number("threads", 0, "threads; 0: all cores");
  const std::string out = args.text("out", "build/demo/hops", "folder of the report");
  if (!args.ready()) return 0;
  const gyre::cpu device = threads > 0 ? gyre::cpu(threads) : gyre::cpu{};
  std::filesystem::create_directories(out);

  std::cout << "Pointer chasing: a random permutation f of 8 nodes as 8 edges in random order; the model must say f^k(i) for "
               "each node i.\n"
               "Trained with k = r drawn from 1..6 on "
            << device.threads() << " threads, then asked for up to 32 hops.\n";
  hops_training training(device, gyre::seed{seed});
  std::vector<gyre::step_report> log;
  const stopwatch watch;
  {
    const interrupt_guard guard;
    progress bar;
    while (!training.finished()) {
      if (interrupt_guard::requested()) {
        bar.say("interrupted after " + std::to_string(log.size()) + " steps; nothing is kept, start again with the same seed");
        return 130;
      }
      log.push_back(training.step());
      const double done = static_cast<double>(log.size()) / hops_steps, seconds = watch.seconds();
      bar.show(done, "step " + std::to_string(log.size()) + "/" + std::to_string(hops_steps) + "  loss " +
                         fixed_text(log.back().loss, 4) + "  r " + std::to_string(log.back().depth.total()) + "  " +
                         fixed_text(static_cast<double>(log.size() * hops_rows * gyre::hops_task::length) / seconds, 0) +
                         " tokens/s  left " + clock_text(seconds / done - seconds));
    }
  }
  const double trained = watch.seconds();

  line_chart accuracy{
      .title = "Right answers over hops",
      .x = {.label = "hops k"},
      .y = {.label = "share of right answers", .from_zero = true},
      .note = "Each point: 4,096 answers on fresh permutations; guessing gives 0.125. Training saw k = r up to 6."};
  std::cout << "\nhops   r = k   r = k - 1   r = k + 1\n";
  series matched{.name = "r = k", .markers = true}, fewer{.name = "r = k - 1"}, more{.name = "r = k + 1"};
  table numbers{.title = "Accuracy", .header = {"hops", "r = k", "r = k - 1", "r = k + 1"}};
  for (int k = 1; k <= 32; ++k) {
    const double at = training.accuracy(k, k), below = k > 1 ? training.accuracy(k, k - 1) : 0,
                 above = training.accuracy(k, k + 1);
    std::printf("%4d   %.4f      %s      %.4f\n", k, at, k > 1 ? fixed_text(below, 4).c_str() : "     -", above);
    matched.x.push_back(k), matched.y.push_back(at);
    if (k > 1) fewer.x.push_back(k), fewer.y.push_back(below);
    more.x.push_back(k), more.y.push_back(above);
    numbers.rows.push_back({std::to_string(k), fixed_text(at, 4), k > 1 ? fixed_text(below, 4) : "-", fixed_text(above, 4)});
  }
  accuracy.lines = {matched, fewer, more};

  // For a few questions, every number of steps: only r = k answers.
  line_chart by_steps{.title = "Right answers over steps",
                      .x = {.label = "steps r"},
                      .y = {.label = "share of right answers", .from_zero = true}};
  for (int k : {1, 4, 8, 16}) {
    series line{.name = std::to_string(k) + (k == 1 ? " hop" : " hops")};
    for (int r = 1; r <= 24; ++r) line.x.push_back(r), line.y.push_back(training.accuracy(k, r, 128));
    by_steps.lines.push_back(std::move(line));
  }
  line_chart loss{.title = "Loss", .x = {.label = "step"}, .y = {.label = "nats per answer", .logarithmic = true}};
  series raw{.name = "each step", .faint = true};
  for (const auto& r : log) raw.x.push_back(static_cast<double>(r.step)), raw.y.push_back(r.loss);
  loss.lines = {raw, {.name = "mean of 50 steps", .x = raw.x, .y = moving_average(raw.y, 50)}};

  const double worst_24 = *std::min_element(matched.y.begin(), matched.y.begin() + 24),
               worst_32 = *std::min_element(matched.y.begin(), matched.y.end());
  report page{.title = "One hop a step",
              .subtitle = "A recurrent-depth model that learned to follow 1 to 6 pointers, asked for up to 32. Seed " +
                          std::to_string(seed) + "."};
  page.sections.push_back({"What it can do",
                           "The answer to k hops appears after exactly k steps: depth is chosen when the model is used.",
                           {key_figures{{{"worst accuracy, 1 to 24 hops", fixed_text(worst_24, 4)},
                                         {"worst accuracy, 1 to 32 hops", fixed_text(worst_32, 4)},
                                         {"training", clock_text(trained)},
                                         {"parameters", std::to_string(hops_model::parameter_count)}}},
                            accuracy, by_steps}});
  page.sections.push_back({"Training", "", {loss, numbers}});
  const std::string path = out + "/report.html";
  write_report(page, path);
  std::cout << "\nworst accuracy 1..24 hops " << fixed_text(worst_24, 4) << ", 1..32 hops " << fixed_text(worst_32, 4)
            << "; trained in " << clock_text(trained) << "\nreport: " << path << '\n';
  return 0;
}

}  // namespace examples
