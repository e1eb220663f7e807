// One run of an experiment: trains a model within its budget, or goes on with it, and measures it.
#pragma once

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../support/mixture_report.hpp"
#include "../support/task_data.hpp"
#include "../support/time_budget.hpp"
#include "results.hpp"

namespace experiments {

inline examples::mixture_rules rules_of(const experiment& e, std::uint64_t steps) {
  return {gyre::adamw{.lr = e.learning_rate, .decay = 0.01},
          examples::any_schedule{gyre::warmup_constant_cooldown{.warm_up = 100, .cooldown_start = 0.7, .floor = 0.05}},
          gyre::trainer_options{.seed = gyre::seed{e.seed}, .total_steps = steps}};
}

/// "2026-11-30".
inline std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

/// How much is looked at, in tokens.
struct looks {
  gyre::index examined = 73000;  // after training: each expert expects a thousand hits at each depth
  gyre::index validation = 0;    // every hundredth of the training; 0: 256 rows, and at least 1,024 answers
};

/// Runs it in `folder`, from its latest checkpoint if there is one; nothing if it was stopped.
inline std::optional<result> run(const experiment& e, const std::filesystem::path& folder, looks look) {
  using namespace examples;
  const gyre::cpu device(1);
  const auto data = make_task(e.task, e.rows, e.length, gyre::seed{e.seed});
  session_options options;
  options.folder = folder, options.name = e.name();
  std::uint64_t steps = e.steps;
  if (const auto latest = gyre::latest_checkpoint(folder)) {
    const gyre::json kept = checkpoint_data(*latest);
    steps = gyre::json_field(kept, latest->string())["settings"]["steps"].uint64();
    options.resume = true;
  } else if (steps == 0) {
    const auto scratch = make_mixture(e.model, device, rules_of(e, std::uint64_t{1} << 40));
    const any_depth depth{gyre::fixed_depth{scratch->steps_of_use()}};
    steps = steps_within<processor_watch>(
                60 * e.minutes, *scratch, *data, 1, [&](std::uint64_t) { return depth; }, interrupt_guard::requested)
                .steps;
    if (steps == 0) return std::nullopt;
  }
  options.settings.set("steps", steps);
  options.validate_steps = (std::max)(std::uint64_t{1}, steps / 100);
  options.validation_tokens = look.validation > 0 ? look.validation : (std::max)(gyre::index{1024}, 256 * data->answers());
  options.last_tokens = options.validation_tokens, options.watch_steps = 0;

  const auto model = make_mixture(e.model, device, rules_of(e, steps));
  options.depths = {model->steps_of_use()};
  const session_result trained = run_session(*model, *data, std::move(options));
  if (trained.stopped) return std::nullopt;

  result r;
  r.of = e, r.date = today(), r.threads = device.threads();
  r.steps = steps, r.tokens = static_cast<double>(steps) * static_cast<double>(e.rows * data->length());
  r.seconds = trained.seconds;
  r.parameters = static_cast<double>(model->parameters());
  r.forward_flops = static_cast<double>(model->forward_flops(data->length()));
  r.tokens_to_90 = tokens_to(curve_of(trained.records, static_cast<double>(e.rows * data->length())), 0.9);
  const gyre::index rows = (std::max)(gyre::index{1}, look.examined / data->length());
  const accuracy right =
      *model->accuracy_on(data->held_out_rows((std::min)(gyre::index{4096}, rows), 2), model->steps_of_use());
  r.accuracy = right.all, r.last_accuracy = right.last;
  const gyre::expert_use_report use = model->examine(data->held_out_rows(rows, 1)).experts;
  r.experts = static_cast<double>(use.experts), r.active = static_cast<double>(use.active);
  r.depths = static_cast<double>(use.depths), r.hits = use.hits;
  r.per_depth_diversity = use.per_depth_diversity, r.distinct_sets = use.distinct_sets;
  if (use.shared) r.pooled_diversity = use.pooled_diversity, r.distinct_per_token = use.distinct_per_token;
  r.used_at_7 = used_at(use, 7);
  return r;
}

}  // namespace experiments
