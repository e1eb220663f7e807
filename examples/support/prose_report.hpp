// What the prose demo prints and draws.
#pragma once

#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compressed.hpp"
#include "prose_examination.hpp"
#include "report.hpp"
#include "session.hpp"
#include "training.hpp"

namespace examples {

struct prose_run {
  using training_type = training_of<prose_model, gyre::adamw>;
  struct speech {
    int steps = 0;
    std::string text;
  };
  std::string name;
  any_depth depth;
  std::unique_ptr<training_type> model;
  session_result result;
  std::vector<speech> spoken;

  double bits(int r) const {
    for (const gyre::evaluation& e : result.last)
      if (e.depth == r) return e.bits_per_token();
    return std::nan("");
  }
};

struct prose_demo {
  prose_run recurrent, single;
  std::size_t train_bytes = 0, held_bytes = 0;
  gyre::exits::latent_diff exit_rule{.below = 0.03f, .cap = 32};
  exit_counts exits;
  std::string prompt;
  std::optional<xz_figures> xz;
};

inline void print_prose(const prose_demo& demo) {
  std::cout << "\nHeld-out bits per byte, last " << thousands(demo.held_bytes) << " bytes of the text\n"
            << "  steps r    " << demo.recurrent.name << "    " << demo.single.name << '\n';
  for (const gyre::evaluation& e : demo.recurrent.result.last)
    std::printf("  %7d    %8.3f    %9.3f\n", e.depth, e.bits_per_token(), demo.single.bits(e.depth));
  if (demo.xz)
    std::printf("  xz -9e: whole text %.3f, held-out part alone %.3f, held-out part given the rest %.3f\n", demo.xz->whole,
                demo.xz->last_alone, demo.xz->last_given_rest);
  else
    std::cout << "  (no xz here to compare with)\n";
  std::cout << "With exits at a latent difference of " << fixed_text(static_cast<double>(demo.exit_rule.below), 2)
            << " a held-out byte takes " << fixed_text(demo.exits.mean, 1) << " of " << demo.exit_rule.cap
            << " steps on average.\n";
  for (const auto& s : demo.recurrent.spoken)
    std::cout << "\n" << demo.recurrent.name << ", r = " << s.steps << ":\n" << demo.prompt << s.text << '\n';
}

namespace detail {

/// One value of every step's record against tokens seen, with a moving average.
template <class Value>
void add_history(line_chart& chart, const prose_run& run, Value value, std::size_t window) {
  series raw{.name = run.name + ", each step", .faint = true};
  for (const step_record& r : run.result.records.steps)
    raw.x.push_back(static_cast<double>(r.tokens)), raw.y.push_back(value(r.report));
  chart.lines.push_back({.name = run.name, .x = raw.x, .y = moving_average(raw.y, window)});
}

inline std::string decimals(double value, int digits = 3) { return std::isfinite(value) ? fixed_text(value, digits) : "-"; }

}  // namespace detail

inline report prose_report(const prose_demo& demo) {
  const prose_run& deep = demo.recurrent;
  const prose_run& flat = demo.single;

  line_chart by_depth{.title = "Held-out bits per byte over steps",
                      .x = {.label = "steps r", .logarithmic = true, .ticks = {1, 2, 4, 8, 16, 32}},
                      .y = {.label = "bits per byte"},
                      .note = "One model, tested with different numbers of steps; lower is better."};
  table numbers{.title = "Held-out bits per byte", .header = {"r", deep.name, flat.name}};
  for (const prose_run* run : {&deep, &flat}) {
    series line{.name = run->name, .markers = true};
    for (const gyre::evaluation& e : run->result.last) line.x.push_back(e.depth), line.y.push_back(e.bits_per_token());
    by_depth.lines.push_back(std::move(line));
  }
  for (const gyre::evaluation& e : deep.result.last)
    numbers.rows.push_back(
        {std::to_string(e.depth), detail::decimals(e.bits_per_token()), detail::decimals(flat.bits(e.depth))});
  if (demo.xz) {
    numbers.rows.push_back({"xz -9e, whole text", detail::decimals(demo.xz->whole), "-"});
    numbers.rows.push_back({"xz -9e, held out alone", detail::decimals(demo.xz->last_alone), "-"});
    numbers.rows.push_back({"xz -9e, held out given the rest", detail::decimals(demo.xz->last_given_rest), "-"});
  }

  line_chart loss{
      .title = "Training loss", .x = {.label = "bytes seen"}, .y = {.label = "bits per byte"}, .note = "Mean of 50 steps."};
  line_chart state{.title = "Norm of the state", .x = {.label = "bytes seen"}, .y = {.label = "||s_r||", .from_zero = true}};
  line_chart change{
      .title = "Relative change in the last step", .x = {.label = "bytes seen"}, .y = {.label = "||s_r - s_(r-1)|| / ||s_r||"}};
  line_chart correlation{.title = "Token correlation of the state",
                         .x = {.label = "bytes seen"},
                         .y = {.label = "mean correlation", .from_zero = true},
                         .note = "Near 1, all tokens have the same state: a collapsed model."};
  for (const prose_run* run : {&deep, &flat}) {
    detail::add_history(
        loss, *run, [](const auto& r) { return r.bits_per_token(); }, 50);
    detail::add_history(
        state, *run, [](const auto& r) { return r.seen.state_norm; }, 50);
    detail::add_history(
        change, *run, [](const auto& r) { return r.seen.relative_change; }, 50);
    detail::add_history(
        correlation, *run, [](const auto& r) { return r.seen.token_correlation; }, 50);
  }
  line_chart validation{
      .title = "Held-out bits per byte during training", .x = {.label = "step"}, .y = {.label = "bits per byte"}};
  for (int r : {1, 2, 8, 32}) {
    series line{.name = "r = " + std::to_string(r), .markers = true};
    for (const validation_record& v : deep.result.records.validations)
      for (const gyre::evaluation& e : v.at)
        if (v.purpose == "interval" && e.depth == r)
          line.x.push_back(static_cast<double>(v.step)), line.y.push_back(e.bits_per_token());
    validation.lines.push_back(std::move(line));
  }

  bar_chart exits{.title = "Steps until a held-out byte's state has settled", .x_label = "steps", .y_label = "share of bytes"};
  for (std::size_t i = 0; i < demo.exits.counts.size(); ++i) {
    exits.labels.push_back(std::to_string(i + 1));
    exits.values.push_back(demo.exits.counts[i] / static_cast<double>((std::max)(demo.exits.tokens, gyre::index{1})));
  }
  exits.note = "Exit when ||s_t - s_(t-1)|| / ||s_t|| < " + fixed_text(static_cast<double>(demo.exit_rule.below), 2) +
               ", at most " + std::to_string(demo.exit_rule.cap) + " steps; " +
               thousands(static_cast<std::uint64_t>(demo.exits.tokens)) + " bytes of held-out text, mean " +
               fixed_text(demo.exits.mean, 1) + ".";

  const auto tokens = [](const prose_run& run) {
    return run.result.records.steps.empty() ? std::string("0") : thousands(run.result.records.steps.back().tokens);
  };
  report page{
      .title = "Thinking in depth, on six novels' worth of prose",
      .subtitle =
          "Two models of " + thousands(static_cast<std::uint64_t>(prose_model::parameter_count)) +
          " parameters, trained equally long: one with a random number of steps (mean 8), one always with a single step."};
  const double gain = 100 * (1 - deep.bits(8) / deep.bits(1));
  page.sections.push_back(
      {"More steps, better predictions",
       "The same weights, run more often: bits per byte fall with r and stay level beyond the depths of training.",
       {key_figures{{{"bits per byte at r = 8", detail::decimals(deep.bits(8))},
                     {"better than r = 1 by", detail::decimals(gain, 1) + " %"},
                     {"twin of one step", detail::decimals(flat.bits(1))},
                     {"trained on", tokens(deep) + " / " + tokens(flat) + " bytes"}}},
        by_depth, validation, numbers}});
  page.sections.push_back({"When a state has settled", "", {exits}});
  report_section speech{"What they say", "Temperature 0.7, top-p 0.95; the prompt is set in bold.", {}};
  for (const prose_run* run : {&deep, &flat})
    for (const auto& s : run->spoken)
      speech.items.push_back(text_sample{run->name + ", r = " + std::to_string(s.steps), demo.prompt, s.text});
  page.sections.push_back(std::move(speech));
  page.sections.push_back({"Training", "", {loss, correlation, state, change}});
  page.footer =
      "Trained on " + thousands(demo.train_bytes) + " bytes; the last " + thousands(demo.held_bytes) + " were held out.";
  return page;
}

}  // namespace examples
