// A training session of a program: steps with progress, validation and watches, checkpoints, and a clean stop.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gyre/train/monitors.hpp>

#include "folder_lock.hpp"
#include "session_text.hpp"
#include "terminal.hpp"
#include "training.hpp"
#include "training_data.hpp"
#include "training_log.hpp"

namespace examples {

struct session_options {
  std::filesystem::path folder = {};  // of checkpoints and log.jsonl; empty: nothing is written
  bool resume = false;                // goes on from the latest checkpoint in `folder`
  gyre::index micro_batches = 1;
  double save_seconds = 60;                               // between checkpoints
  std::uint64_t save_steps = 0;                           // the same in steps; 0: by time alone
  std::uint64_t validate_steps = 0;                       // between validations; 0: only after the last step
  std::vector<int> depths = {1, 2, 4, 8, 16, 32, 64};     // of validations
  gyre::index validation_tokens = 4096, last_tokens = 0;  // of a validation between steps, and after the last; 0: all held out
  std::uint64_t watch_steps = 50;                         // between looks whether the model ignores its state; 0: never
  gyre::index watch_tokens = 4096;                        // of such a look
  gyre::json settings = gyre::json::object();             // the program's own, kept in every checkpoint
  std::string name = {};                                  // begins the progress line
  std::string resume_command = {};                        // what a stopped session tells to type
  std::function<bool()> stop = interrupt_guard::requested;
  std::ostream* terminal = &std::cerr;  // takes progress and notes
};

struct session_result {
  training_records records;
  std::vector<gyre::evaluation> last;  // the validation after the last step; empty when stopped before it
  std::filesystem::path checkpoint;    // the latest
  double seconds = 0;                  // of training, without validation and saving, earlier sessions included
  bool stopped = false;                // before the last step
};

/// `data` of a checkpoint, before there is a trainer that could load it.
inline gyre::json checkpoint_data(const std::filesystem::path& checkpoint) {
  const std::filesystem::path file = checkpoint / "state.json";
  const gyre::json root = gyre::parse_json(gyre::read_file(file), file.string());
  const gyre::json_field data = gyre::json_field(root, file.string())["data"];
  gyre::require(data.value().kind() == gyre::json_kind::object, data.where(), ": expected an object, found ",
                gyre::describe(data.value().kind()));
  return data.value();
}

class session {
 public:
  session(training& model, training_data& data, session_options options)
      : model_(model), data_(data), options_(std::move(options)), show_(*options_.terminal), log_(begin()) {}

  session_result run() {
    const std::uint64_t total = model_.options().total_steps, first = model_.steps();
    stopwatch whole;
    double since_save = 0;
    bool stopped = false;
    while (!stopped && model_.steps() < total) {
      const gyre::step_report report = step();
      look(report);
      show(report, total, whole.seconds(), first);
      if (options_.validate_steps > 0 && report.step % options_.validate_steps == 0 && report.step < total)
        validate("interval", options_.depths, options_.validation_tokens);
      stopped = options_.stop && options_.stop();
      const double now = whole.seconds();
      if (now - since_save >= options_.save_seconds || (options_.save_steps > 0 && report.step % options_.save_steps == 0))
        save(), since_save = now;
    }
    if (model_.steps() > 0) save();
    session_result result;
    if (model_.steps() >= total) result.last = last_validation();
    result.stopped = result.last.empty() && !(model_.steps() >= total && data_.held_out(1, 1).empty());
    if (result.stopped) say_stopped(total);
    result.records = log_.records();
    result.checkpoint = saved_;
    result.seconds = seconds_;
    return result;
  }

 private:
  static constexpr int deep = 8;                    // what the watch compares r = 1 with
  static constexpr std::size_t looks_averaged = 4;  // so a failure is named three looks after the first that shows it

  /// Locks the folder, and loads the latest checkpoint if asked to; returns the log that fits to it.
  training_log begin() {
    if (options_.folder.empty()) return training_log();
    if (!options_.resume) std::filesystem::create_directories(options_.folder);
    if (std::filesystem::is_directory(options_.folder)) lock_ = std::make_unique<folder_lock>(options_.folder);
    const auto latest = gyre::latest_checkpoint(options_.folder);
    const std::filesystem::path log = options_.folder / "log.jsonl";
    if (!options_.resume) {
      if (latest)
        gyre::fail(options_.folder.string(), " holds a training already (", latest->filename().string(),
                   "); go on with it by --resume, or choose another folder");
      return training_log(log);
    }
    if (!latest) gyre::fail(options_.folder.string(), " holds no checkpoint to resume from; start without --resume");
    const gyre::resumed from = model_.load(*latest);
    const gyre::json_field kept(from.data, (*latest / "state.json").string() + ": data");
    gyre::require(kept["data"].value() == data_.identity(), kept.where(), ": the checkpoint was trained on ",
                  gyre::write_json(kept["data"].value()), ", given is ", gyre::write_json(data_.identity()),
                  "; the texts must be the same, in the same order");
    for (const std::string& difference : from.differences)
      show_.say("note: " + difference + "; the result will not be that of an uninterrupted training");
    data_.seek(kept["position"]);
    seconds_ = kept["seconds"].real();
    collapse_.weight = kept["collapse"]["weight"].real(), collapse_.sum = kept["collapse"]["sum"].real();
    saved_ = *latest, saved_step_ = from.step;
    show_.say("going on from step " + std::to_string(from.step) + " of " + std::to_string(model_.options().total_steps));
    return training_log(log, from.step);
  }

  gyre::step_report step() {
    stopwatch watch;
    gyre::step_report report;
    try {
      const int depth = model_.next_depth().total();
      for (gyre::index part = 0; part < options_.micro_batches; ++part)
        model_.accumulate(data_.next(model_.steps() + 1, static_cast<std::uint32_t>(part), depth));
      report = model_.update();
    } catch (const gyre::error& problem) {
      show_.finish();
      gyre::fail(problem.what(), saved_.empty() ? "" : ". The last checkpoint is " + saved_.string());
    }
    const double took = watch.seconds();
    seconds_ += took;
    recent_tokens_ = 0.95 * recent_tokens_ + static_cast<double>(report.tokens);
    recent_seconds_ = 0.95 * recent_seconds_ + took;
    recent_loss_ = 0.9 * recent_loss_ + report.loss;
    recent_weight_ = 0.9 * recent_weight_ + 1;
    log_.add(step_record{report, model_.tokens_seen(), seconds_});
    return report;
  }

  /// Both watches. While states are collapsed they are of no use either, and only the cause is named.
  void look(const gyre::step_report& report) {
    const auto collapsed = collapse_.see(report.step, report.seen.token_correlation);
    if (collapsed) name_failure("collapse", report.step, *collapsed);
    const bool due = options_.watch_steps > 0 && report.step % options_.watch_steps == 0;
    if (!due || model_.most_depth() == 1 || !data_.depth_should_help()) return;
    if (validate("watch", {1, deep}, options_.watch_tokens).empty() || collapsed) return;
    if (const auto ignored = state_is_ignored(report.step)) name_failure("ignored-state", report.step, *ignored);
  }
  /// The watch sees the mean of the last looks since learning has begun. A single look says little: after steps that happened to
  /// be shallow, r = 1 is as good as r = 8 for a while in a sound training too.
  std::optional<std::string> state_is_ignored(std::uint64_t step) const {
    const gyre::ignored_state_watch watch;
    double at_1 = 0, at_deep = 0;
    std::size_t looks = 0;
    const auto& all = log_.records().validations;
    for (auto v = all.rbegin(); v != all.rend() && looks < looks_averaged; ++v) {
      if (v->purpose != "watch" || v->at.size() != 2) continue;
      if (!(v->at[1].loss < std::log(model_.vocabulary()) - watch.learned)) break;
      at_1 += v->at[0].loss, at_deep += v->at[1].loss, ++looks;
    }
    if (looks < looks_averaged) return std::nullopt;
    const double count = static_cast<double>(looks);
    return watch.see(step, model_.vocabulary(), at_1 / count, at_deep / count, deep);
  }
  /// Once in a training, however often it is resumed.
  void name_failure(const std::string& failure, std::uint64_t step, const std::string& sentence) {
    for (const failure_record& known : log_.records().failures)
      if (known.failure == failure) return;
    show_.say("WARNING " + sentence);
    log_.add(failure_record{step, failure, sentence});
  }

  void show(const gyre::step_report& report, std::uint64_t total, double elapsed, std::uint64_t first) {
    session_progress p{.step = report.step, .total = total};
    p.loss = recent_loss_ / recent_weight_, p.depth = report.depth.total();
    p.tokens_per_second = recent_tokens_ / recent_seconds_;
    p.seconds_left = elapsed / static_cast<double>(report.step - first) * static_cast<double>(total - report.step);
    const std::string name = options_.name.empty() ? "" : options_.name + "  ";
    show_.show(static_cast<double>(report.step) / static_cast<double>(total), name + progress_text(p));
  }

  /// Held-out losses; none if it was stopped. A look of the watch is short, and is not.
  std::vector<gyre::evaluation> validate(const std::string& purpose, const std::vector<int>& depths, gyre::index tokens) {
    std::vector<gyre::evaluation> results;
    std::vector<accuracy> right;
    for (const int depth : depths) {
      const auto rows = data_.held_out(depth, tokens);
      if (rows.empty()) return {};
      const auto done = model_.evaluate(rows, {&depth, 1}, purpose == "watch" ? nullptr : options_.stop);
      if (done.empty()) return {};
      results.push_back(done.front());
      if (const auto measured = model_.accuracy_on(rows, depth)) right.push_back(*measured);
    }
    log_.add(validation_record{model_.steps(), purpose, results, right});
    return results;
  }
  std::vector<gyre::evaluation> last_validation() {
    for (const validation_record& known : log_.records().validations)
      if (known.purpose == "last" && known.step == model_.steps()) return known.at;
    show_.say(thousands(model_.tokens_seen()) + " tokens in " + clock_text(seconds_) + " of training; validating");
    const auto results = validate("last", options_.depths, options_.last_tokens);
    if (!results.empty())
      show_.say("held out, " + thousands(static_cast<std::uint64_t>(results.front().tokens)) + " " + data_.unit() + "s\n" +
                validation_table(results, data_.unit()));
    return results;
  }

  void save() {
    if (options_.folder.empty() || saved_step_ == model_.steps()) return;
    gyre::json kept = gyre::json::object(), collapse = gyre::json::object();
    collapse.set("weight", collapse_.weight), collapse.set("sum", collapse_.sum);
    kept.set("settings", options_.settings), kept.set("data", data_.identity()), kept.set("position", data_.position());
    kept.set("seconds", seconds_), kept.set("collapse", std::move(collapse));
    saved_ = model_.save(options_.folder, kept);
    saved_step_ = model_.steps();
  }
  void say_stopped(std::uint64_t total) {
    show_.say("stopped after step " + std::to_string(model_.steps()) + " of " + std::to_string(total) +
              (saved_.empty() ? "" : ", saved in " + saved_.string()) +
              (options_.resume_command.empty() ? "" : "\ngo on with: " + options_.resume_command));
  }

  training& model_;
  training_data& data_;
  session_options options_;
  progress show_;
  gyre::collapse_watch collapse_;
  double seconds_ = 0;
  std::filesystem::path saved_;
  std::uint64_t saved_step_ = 0;
  std::unique_ptr<folder_lock> lock_;
  training_log log_;  // after what begin() sets
  double recent_tokens_ = 0, recent_seconds_ = 0, recent_loss_ = 0, recent_weight_ = 0;
};

/// Trains `model` on `data` up to its total of steps.
inline session_result run_session(training& model, training_data& data, session_options options) {
  return session(model, data, std::move(options)).run();
}

}  // namespace examples
