// Trains a model of the catalogue on text files or on a built-in task: train --help.
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "support/arguments.hpp"
#include "support/catalogue_training.hpp"
#include "support/session.hpp"
#include "support/settings.hpp"
#include "support/time_budget.hpp"

namespace {

using namespace examples;

constexpr const char* purpose = R"(Trains a language model of recurrent depth on text, or on a built-in task.

  train --text novel.txt --out runs/novel --minutes 4     four minutes with the main recipe
  train --out runs/novel --resume                         goes on where it was stopped, bit for bit
  train --task hops --out runs/hops                       pointer chasing
  train --recipe collapse --text novel.txt --out runs/c   a training that fails, and is told so

The folder --out holds the two latest checkpoints and log.jsonl, a line of JSON for every step, validation and warning.
Ctrl-C saves and ends; a second one ends at once. Recipes only set other defaults: any option given wins.)";

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const std::string_view name : models::names()) names.emplace_back(name);
  return names;
}

/// A checkpoint's own settings when a training goes on, else those of the recipe.
settings starting_point(const std::string& recipe_name, const std::string& task, const std::filesystem::path& folder,
                        bool resume) {
  if (!resume) return recipe(recipe_name == "main" && task == "hops" ? "hops" : recipe_name);
  gyre::require(!folder.empty(), "train: --resume wants --out, the folder of the training");
  const auto latest = gyre::latest_checkpoint(folder);
  if (!latest) gyre::fail("train: ", folder.string(), " holds no checkpoint to resume from; start without --resume");
  const gyre::json data = checkpoint_data(*latest);
  return settings_of(gyre::json_field(data, (*latest / "state.json").string() + ": data")["settings"]);
}

void check(const settings& s) {
  gyre::require(s.task.empty() || s.texts.empty(), "train: --text and --task exclude each other");
  gyre::require(!s.task.empty() || !s.texts.empty(), "train: nothing to train on; give --text FILE or --task hops");
  gyre::require((s.model == "huginn-hops") == (s.task == "hops"), "train: --model ", s.model, " does not fit to ",
                s.task.empty() ? "--text" : "--task " + s.task);
  gyre::require(s.micro_batches >= 1, "train: --micro-batches is ", s.micro_batches, "; at least 1 is needed");
  const auto not_negative = [](const char* name, auto value, const char* meaning) {
    gyre::require(value >= 0, "train: --", name, " is ", value, "; it must not be negative", meaning);
  };
  not_negative("validation-tokens", s.validation_tokens, " (0: all held out)");
  not_negative("last-tokens", s.last_tokens, " (0: all held out)");
  not_negative("watch-tokens", s.watch_tokens, " (0: all held out)");
  not_negative("save-seconds", s.save_seconds, "");
  gyre::require(s.task.empty() || s.depth != "lognormal" || s.backprop >= 0, "train: --backprop is ", s.backprop);
}

/// Tells of what a resumed training does otherwise than the one before it, and refuses what would make its numbers untrue.
void compare(const settings& before, const settings& now, const std::filesystem::path& folder) {
  gyre::require(now.hold_out == before.hold_out, "train: this training holds out ", before.hold_out,
                " bytes, which --hold-out cannot change to ", now.hold_out, ": validation would see text that was trained on");
  const auto tell = [](const char* name, const auto& old, const auto& given, const std::string& more) {
    if (old != given)
      std::cerr << "note: --" << name << " was " << old << " and is " << given << more
                << "; the result will not be that of an uninterrupted training\n";
  };
  tell("rows", before.rows, now.rows, "");
  tell("micro-batches", before.micro_batches, now.micro_batches, "");
  if (before.length == now.length && before.packing == now.packing) return;
  std::string from = "where they were";
  if (const auto latest = gyre::latest_checkpoint(folder)) {
    const gyre::json data = checkpoint_data(*latest);
    const gyre::json_field position = gyre::json_field(data, (*latest / "state.json").string() + ": data")["position"];
    if (position.contains("row")) from = "row " + std::to_string(position["row"].uint64());
  }
  const std::string other = "; the data go on from " + from + ", which is other text now";
  tell("length", before.length, now.length, other);
  tell("packing", before.packing, now.packing, other);
}

/// Fixes the number of steps: as given, or as many as fit into the time; 0 if it was interrupted before that was known.
std::uint64_t total_steps(const settings& s, const place& where, training_data& data) {
  if (s.steps > 0) return s.steps;
  gyre::require(s.minutes > 0, "train: --steps is 0 and --minutes is ", s.minutes, "; one of them must be positive");
  std::cerr << "measuring the speed, for about " << clock_text(s.minutes * 60 / 50) << '\n';
  const auto scratch = make_training(s, where, std::uint64_t{1} << 40);
  const auto rule_of = [&](std::uint64_t total) { return make_depth(s, total); };
  const time_budget fits = steps_within(60 * s.minutes, *scratch, data, s.micro_batches, rule_of, interrupt_guard::requested);
  if (fits.steps == 0) {
    std::cerr << "stopped while measuring; nothing is saved\n";
    return 0;
  }
  std::cerr << "measured " << thousands(static_cast<std::uint64_t>(fits.tokens_per_second)) << " tokens/s; "
            << thousands(fits.steps) << " steps fit into " << s.minutes << " minutes\n";
  return fits.steps;
}

int train(int count, char** values) {
  arguments given(count, values, purpose);
  given.heading("The run:");
  const std::filesystem::path out = given.text("out", "", "folder for checkpoints and log.jsonl; without it nothing is kept");
  const bool resume = given.flag("resume", "go on from the latest checkpoint in --out, with its settings");
  const bool recipe_given = given.has("recipe");
  const std::string recipe_name =
      given.choice("recipe", {"main", "collapse", "ignored-state"}, "main",
                   "settings to start from; the last two fail as the first trainings of Huginn did");
  const place where = read_place(given);

  // The task decides which recipe gives the defaults, so it is looked for before the other settings.
  bool hops = false;
  for (int i = 1; i < count; ++i)
    hops = hops || std::string_view(values[i]) == "--task=hops" ||
           (std::string_view(values[i]) == "--task" && i + 1 < count && std::string_view(values[i + 1]) == "hops");
  const bool minutes_given = given.has("minutes");
  const settings start = starting_point(recipe_name, hops ? "hops" : "", out, resume);
  settings s = start;
  s.steps = resume ? s.steps : 0, s.minutes = 0;
  s = read_settings(given, s, model_names());
  if (!given.ready()) return 0;
  gyre::require(!resume || s.minutes == 0, "train: this training has ", s.steps,
                " steps, which --minutes cannot change; give --steps to change them");
  gyre::require(!minutes_given || (s.minutes > 0 && s.minutes <= most_minutes), "train: --minutes is ", s.minutes,
                "; it must be more than 0 and at most ", static_cast<std::uint64_t>(most_minutes));
  gyre::require(s.steps == 0 || s.minutes == 0, "train: --steps and --minutes exclude each other");
  if (s.steps == 0 && s.minutes == 0) s.steps = start.steps, s.minutes = start.minutes;
  check(s);
  gyre::require(s.rows <= (gyre::index{1} << 31) / (std::max)(s.length, gyre::index{1}), "train: --rows is ", s.rows,
                " and --length ", s.length, "; a micro-batch has at most 2^31 tokens");
  if (resume && recipe_given) std::cerr << "note: --recipe is ignored: the training goes on with its own settings\n";
  if (resume) compare(start, s, out);

  const interrupt_guard guard;
  const auto data = make_data(s);
  s.steps = total_steps(s, where, *data), s.minutes = 0;
  if (s.steps == 0) return 0;
  const auto model = make_training(s, where, s.steps);
  gyre::require(s.length <= model->context(), "train: --length is ", s.length, "; the context of ", s.model, " is ",
                model->context(), " tokens");
  const std::size_t memory = model->plan(data->rows(), data->length());
  std::cerr << s.model << ", " << thousands(static_cast<std::uint64_t>(model->parameters())) << " parameters, "
            << description(where) << ", " << memory / 1000000 << " MB for passes\n";
  session_options options;
  options.folder = out, options.resume = resume, options.micro_batches = s.micro_batches;
  options.save_seconds = s.save_seconds, options.save_steps = s.save_steps;
  options.validate_steps = s.validate_steps, options.validation_tokens = s.validation_tokens;
  options.last_tokens = s.last_tokens;
  options.watch_steps = s.watch_steps, options.watch_tokens = s.watch_tokens;
  options.settings = to_json(s);
  if (!out.empty()) options.resume_command = "train --out " + out.string() + " --resume";
  const session_result result = run_session(*model, *data, options);
  if (!result.stopped && !result.checkpoint.empty()) std::cerr << "saved in " << result.checkpoint.string() << '\n';
  return 0;
}

}  // namespace

int main(int count, char** values) {
  return examples::guarded(count, values, [&] { return train(count, values); });
}
