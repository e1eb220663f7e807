// The settings of a training: options of a command line, and what a checkpoint keeps of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gyre/io/json.hpp>
#include <gyre/io/json_field.hpp>

#include "arguments.hpp"

namespace examples {

/// The defaults are the main recipe, which `demo` follows too.
struct settings {
  std::string model = "huginn-prose", task;
  std::vector<std::string> texts;
  std::uint64_t steps = 0;
  double minutes = 0;
  gyre::index rows = 4, length = 256, micro_batches = 1;
  std::string packing = "keep_tail";
  std::uint64_t hold_out = 200000;
  std::string precision = "fp32";
  std::string optimizer = "adamw";
  double lr = 2e-3, decay = 0.05, clip = 1;
  bool running_start = false;
  std::string schedule = "cooldown";
  std::uint64_t warm_up = 50;
  double cooldown_start = 0.5, floor = 0.02;
  std::string depth = "lognormal";
  double mean_steps = 8;
  int low = 1, high = 6, backprop = 4;
  bool curriculum = false;
  double state_scale = 1;
  std::uint64_t seed = 1;
  double save_seconds = 60;
  std::uint64_t save_steps = 0, validate_steps = 250, watch_steps = 50;
  gyre::index validation_tokens = 4096, last_tokens = 32768, watch_tokens = 4096;
};

/// Shows a visitor every setting that belongs to a run: its option, its place, and what the option means. `names` are the models
/// of the program.
template <class Settings, class Visitor>
void each_setting(Settings& s, const std::vector<std::string>& names, Visitor&& v) {
  v.heading("What is trained, and on what:");
  v.word("model", s.model, names, "the model");
  v.words("text", s.texts, "a text file, a document of bytes");
  v.word("task", s.task, {"", "hops"}, "a built-in task instead of text");
  v.number("hold-out", s.hold_out, "bytes at the end of the text for validation, at most a tenth");
  v.word("packing", s.packing, {"keep_tail", "drop_tail"},
         "the end of a document that does not fit its row opens the next one, or is dropped");
  v.number("rows", s.rows, "rows of a micro-batch");
  v.number("length", s.length, "tokens of a row");
  v.number("micro-batches", s.micro_batches, "micro-batches of an optimiser step");
  v.word("precision", s.precision, {"fp32", "bf16_mixed"},
         "of parameters and activations; bf16_mixed keeps fp32 masters, and is slower here: the processor computes in fp32");
  v.number("seed", s.seed, "of weights, data order, depths and initial states");

  v.heading("How long:");
  v.number("steps", s.steps, "optimiser steps; with neither of the two the recipe decides");
  v.number("minutes", s.minutes, "time to train; the speed is measured first, then the number of steps is fixed");

  v.heading("Optimiser:");
  v.word("optimizer", s.optimizer, {"adamw", "huginn_adam", "muon"}, "the rule");
  v.number("lr", s.lr, "learning rate; muon gives a twentieth of it to what is no matrix");
  v.number("decay", s.decay, "weight decay, times the learning rate; huginn_adam has its own");
  v.flag("running-start", s.running_start, "huginn_adam's moments start as the first gradient");
  v.number("clip", s.clip, "most norm of the gradient");
  v.word("schedule", s.schedule, {"constant", "cooldown", "cosine"}, "learning rate after the warm-up");
  v.number("warm-up", s.warm_up, "steps from near 0 to the learning rate");
  v.number("cooldown-start", s.cooldown_start, "fraction of the steps after which cooldown falls");
  v.number("floor", s.floor, "where cooldown and cosine end, as a fraction of the learning rate");

  v.heading("Recurrence:");
  v.word("depth", s.depth, {"lognormal", "fixed", "uniform"}, "how the number of steps r is drawn");
  v.number("mean-steps", s.mean_steps, "mean of lognormal, value of fixed");
  v.number("low", s.low, "least r of uniform");
  v.number("high", s.high, "largest r of uniform");
  v.number("backprop", s.backprop, "last steps that carry gradient; 0: all");
  v.flag("curriculum", s.curriculum, "depth grows from 1 over three quarters of the steps");
  v.number("state-scale", s.state_scale, "of random initial states");

  v.heading("Checkpoints and validation:");
  v.number("save-seconds", s.save_seconds, "seconds between checkpoints");
  v.number("save-steps", s.save_steps, "steps between checkpoints; 0: by time alone");
  v.number("validate-steps", s.validate_steps, "steps between validations; 0: only at the end");
  v.number("validation-tokens", s.validation_tokens, "tokens of those validations; 0: all held out");
  v.number("last-tokens", s.last_tokens, "tokens of the validation at the end; 0: all held out");
  v.number("watch-steps", s.watch_steps, "steps between looks whether more steps than one help; 0: never");
  v.number("watch-tokens", s.watch_tokens, "tokens of such a look");
}

namespace detail {

struct settings_from_arguments {
  arguments& given;
  void heading(std::string_view text) { given.heading(text); }
  void word(std::string_view name, std::string& value, const std::vector<std::string>& words, std::string_view help) {
    value = given.choice(name, words, value, help);
  }
  void words(std::string_view name, std::vector<std::string>& value, std::string_view help) {
    if (std::vector<std::string> all = given.texts(name, help); !all.empty()) value = std::move(all);
  }
  template <class T>
  void number(std::string_view name, T& value, std::string_view help) {
    value = given.number<T>(name, value, help);
  }
  void flag(std::string_view name, bool& value, std::string_view help) { value = given.flag(name, help) || value; }
};

struct settings_to_json {
  gyre::json out = gyre::json::object();
  void heading(std::string_view) {}
  void word(std::string_view name, const std::string& value, const std::vector<std::string>&, std::string_view) {
    out.set(std::string(name), value);
  }
  void words(std::string_view name, const std::vector<std::string>& value, std::string_view) {
    out.set(std::string(name), gyre::json::array({value.begin(), value.end()}));
  }
  template <class T>
  void number(std::string_view name, const T& value, std::string_view) {
    out.set(std::string(name), value);
  }
  void flag(std::string_view name, const bool& value, std::string_view) { out.set(std::string(name), value); }
};

struct settings_from_json {
  gyre::json_field from;
  void heading(std::string_view) {}
  void word(std::string_view name, std::string& value, const std::vector<std::string>&, std::string_view) {
    // Checkpoints from before there was a choice do not tell.
    if (name == "precision" && !from.contains(name)) return;
    value = from[name].string();
  }
  void words(std::string_view name, std::vector<std::string>& value, std::string_view) {
    value.clear();
    for (std::size_t i = 0; i < from[name].size(); ++i) value.push_back(from[name][i].string());
  }
  template <class T>
  void number(std::string_view name, T& value, std::string_view) {
    if constexpr (std::is_same_v<T, double>)
      value = from[name].real();
    else if constexpr (std::is_unsigned_v<T>)
      value = from[name].uint64();
    else
      value = static_cast<T>(from[name].int64());
  }
  void flag(std::string_view name, bool& value, std::string_view) { value = from[name].boolean(); }
};

}  // namespace detail

inline gyre::json to_json(const settings& s) {
  detail::settings_to_json v;
  each_setting(s, {}, v);
  return v.out;
}
inline settings settings_of(const gyre::json_field& from) {
  settings s;
  each_setting(s, {}, detail::settings_from_json{from});
  return s;
}
/// `s` with what the command line changes.
inline settings read_settings(arguments& given, settings s, const std::vector<std::string>& names) {
  each_setting(s, names, detail::settings_from_arguments{given});
  return s;
}

/// Settings to start from: the main recipe, the hops task, and the two failed runs of docs/failed_runs.md, which says why these
/// numbers. It is the high rate that fails, so these keep it to the end.
inline settings recipe(const std::string& name) {
  settings s;
  if (name == "hops") {
    s.model = "huginn-hops", s.task = "hops";
    s.rows = 64, s.length = 16;
    s.lr = 1.5e-3, s.decay = 0.01, s.warm_up = 100, s.cooldown_start = 0.7, s.floor = 0.05;
    s.depth = "uniform", s.backprop = 0;
    s.steps = 2000;
  } else if (name == "collapse") {
    s.model = "failed-collapse";
    s.rows = 8, s.length = 64, s.steps = 150, s.last_tokens = 8192;
    s.lr = 8e-3, s.schedule = "constant", s.warm_up = 20;
  } else if (name == "ignored-state") {
    s.model = "failed-ignored-state";
    s.rows = 4, s.length = 64, s.steps = 200, s.last_tokens = 8192;
    s.lr = 6e-3, s.schedule = "constant", s.warm_up = 20;
    s.mean_steps = 32, s.watch_steps = 25;
  } else {
    s.minutes = 4;
  }
  return s;
}

}  // namespace examples
