// What the mixtures demo and the experiments tell of a run, and the demo's report.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "mixture_training.hpp"
#include "report.hpp"
#include "session.hpp"

namespace examples {

/// One model's training, and what was asked of it afterwards.
struct mixture_run {
  std::string name;
  std::unique_ptr<mixture_training> model;
  session_result result;
  accuracy right;  // on rows of its own, after training
  mixture_examination seen;
};

/// Accuracies over a training, at the tokens that were seen by then; `step_tokens` are those of a step, counted or not.
struct accuracy_curve {
  std::vector<double> tokens, all, last;
};
inline accuracy_curve curve_of(const training_records& records, double step_tokens) {
  accuracy_curve curve;
  for (const validation_record& v : records.validations) {
    if (v.right.empty()) continue;
    curve.tokens.push_back(static_cast<double>(v.step) * step_tokens);
    curve.all.push_back(v.right.back().all), curve.last.push_back(v.right.back().last);
  }
  return curve;
}
/// Tokens after which a validation first showed at least `wanted` of all answers right; nothing: never.
inline std::optional<double> tokens_to(const accuracy_curve& curve, double wanted) {
  for (std::size_t i = 0; i < curve.all.size(); ++i)
    if (curve.all[i] >= wanted) return curve.tokens[i];
  return std::nullopt;
}
/// Share of experts that are used at `depths` depths or more; nothing where each serves one depth by construction.
inline std::optional<double> used_at(const gyre::expert_use_report& use, std::size_t depths) {
  if (!use.shared || use.used_at_least.size() < depths) return std::nullopt;
  return use.used_at_least[depths - 1];
}

namespace detail {

inline std::string maybe(std::optional<double> value, int decimals) { return value ? fixed_text(*value, decimals) : "-"; }
inline std::string whole(double value) { return thousands(static_cast<std::uint64_t>(value)); }

/// Load of each expert at each depth over the mean; shared experts in the order of the depth at which they are used on average.
inline heat_map use_map(const mixture_run& run) {
  const gyre::expert_use_report& use = run.seen.experts;
  const auto experts = static_cast<std::size_t>(use.experts);
  std::vector<std::size_t> order(experts);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<double> place(experts);
  for (std::size_t e = 0; e < experts; ++e) {
    double sum = 0, weighted = 0;
    for (gyre::index depth = 0; depth < use.depths; ++depth) {
      const auto load = static_cast<double>(use.at(depth)[e]);
      sum += load, weighted += load * static_cast<double>(depth);
    }
    place[e] = sum > 0 ? weighted / sum : static_cast<double>(use.depths);
  }
  if (use.shared)
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
  heat_map map{.title = mixture_title(run.name) + ": load of each expert",
               .x_label = use.shared ? "expert, by the mean depth of its use" : "expert of the layer",
               .y_label = "depth",
               .note = "Tokens over the mean of the depth; 1 is an even load."};
  for (const std::size_t e : order) map.columns.push_back(std::to_string(e));
  for (gyre::index depth = 0; depth < use.depths; ++depth) {
    const auto loads = use.at(depth);
    const double total = static_cast<double>(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}));
    map.rows.push_back(std::to_string(depth));
    map.values.emplace_back();
    for (const std::size_t e : order)
      map.values.back().push_back(total > 0 ? static_cast<double>(loads[e]) * static_cast<double>(experts) / total : 0);
  }
  return map;
}

inline heat_map reading_map(const mixture_run& run) {
  heat_map map{.title = mixture_title(run.name) + ": which depth reads which",
               .x_label = "depth that is read",
               .y_label = "depth that reads",
               .note = "Mean weight of depth attention over tokens and heads; each row sums to 1."};
  for (std::size_t depth = 0; depth < run.seen.reading.size(); ++depth) {
    map.columns.push_back(std::to_string(depth)), map.rows.push_back(std::to_string(depth));
    map.values.push_back(run.seen.reading[depth]);
  }
  return map;
}

inline table diversity_table(const std::vector<mixture_run>& runs) {
  table t{.title = "Use of experts",
          .header = {"model", "experts at a depth", "chosen", "exp(entropy) a depth", "exp(entropy), all depths",
                     "sets of experts a depth", "distinct experts of a token / (D k)", "used at 7 or more depths"},
          .note = "The fewest hits that an expert expects at a depth: "};
  double hits = runs.empty() ? 0 : runs.front().seen.experts.hits;
  for (const mixture_run& run : runs) {
    const gyre::expert_use_report& use = run.seen.experts;
    hits = (std::min)(hits, use.hits);
    t.rows.push_back({mixture_title(run.name), std::to_string(use.experts), std::to_string(use.active),
                      fixed_text(use.per_depth_diversity, 1), use.shared ? fixed_text(use.pooled_diversity, 1) : "-",
                      fixed_text(use.distinct_sets, 0), use.shared ? fixed_text(use.distinct_per_token, 3) : "-",
                      maybe(used_at(use, 7), 3)});
  }
  t.note +=
      whole(hits) + ". In a layered model every expert serves one depth by construction, so that some numbers have no meaning.";
  return t;
}

}  // namespace detail

/// What was trained, for the report's words.
struct mixture_comparison {
  std::string task;
  gyre::index rows = 0, length = 0;
  double learning_rate = 0;
  std::uint64_t seed = 0;
  std::vector<mixture_run> runs;

  double step_tokens() const { return static_cast<double>(rows * length); }
  bool answers_at_each_position() const { return task != "k-hops"; }
  std::string task_text() const {
    if (!answers_at_each_position()) return "following 1 to 8 pointers among eight nodes, the nodes between not shown";
    if (task == "swaps")
      return "in which order five things are after each of " + std::to_string(length - 1) + " random swaps of neighbours";
    return "prefix products of " + std::to_string(length) + " random permutations of five things";
  }
};

inline report mixture_report(const mixture_comparison& c) {
  line_chart all{.title = "Right answers over tokens",
                 .x = {.label = "tokens"},
                 .y = {.label = "share of right answers", .from_zero = true},
                 .note = "On held-out rows, at all positions that have an answer."};
  line_chart last{.title = "The same at the last position",
                  .x = {.label = "tokens"},
                  .y = {.label = "share of right answers", .from_zero = true}};
  line_chart loss{
      .title = "Training loss", .x = {.label = "tokens"}, .y = {.label = "nats an answer"}, .note = "Mean of 50 steps."};
  line_chart load{.title = "Largest load of an expert over the mean",
                  .x = {.label = "tokens"},
                  .y = {.label = "ratio"},
                  .note = "Over all depths and routers of a step, those of projections too; mean of 50 steps."};
  table numbers{.title = "The models",
                .header = {"model", "parameters", "forward FLOP a token", "tokens", "seconds", "right", "right at the end",
                           "tokens to 90% right"}};
  key_figures figures;
  std::vector<report_item> maps, readings;
  for (const mixture_run& run : c.runs) {
    const std::string name = mixture_title(run.name);
    const accuracy_curve curve = curve_of(run.result.records, c.step_tokens());
    all.lines.push_back({.name = name, .x = curve.tokens, .y = curve.all, .markers = true});
    last.lines.push_back({.name = name, .x = curve.tokens, .y = curve.last, .markers = true});
    series losses{.name = name}, loads{.name = name};
    std::vector<double> raw_loss, raw_load;
    for (const step_record& r : run.result.records.steps) {
      losses.x.push_back(static_cast<double>(r.report.step) * c.step_tokens());
      raw_loss.push_back(r.report.loss), raw_load.push_back(r.report.expert_load);
    }
    loads.x = losses.x, losses.y = moving_average(raw_loss, 50), loads.y = moving_average(raw_load, 50);
    loss.lines.push_back(std::move(losses)), load.lines.push_back(std::move(loads));
    const auto reached = tokens_to(curve, 0.9);
    const double tokens = static_cast<double>(run.model->steps()) * c.step_tokens();
    numbers.rows.push_back({name, detail::whole(static_cast<double>(run.model->parameters())),
                            detail::whole(static_cast<double>(run.model->forward_flops(c.length))), detail::whole(tokens),
                            fixed_text(run.result.seconds, 0), fixed_text(run.right.all, 4), fixed_text(run.right.last, 4),
                            reached ? detail::whole(*reached) : "more than " + detail::whole(tokens)});
    figures.figures.push_back({"right answers, " + name, fixed_text(run.right.all, 3)});
    maps.push_back(detail::use_map(run));
    if (!run.seen.reading.empty()) readings.push_back(detail::reading_map(run));
  }
  report page{.title = "Attention to depth, tokens and experts",
              .subtitle =
                  "Depth-recurrent mixtures with and without depth attention (DR+DA, DR) and a layered mixture of experts, "
                  "matched within 2% in parameters and FLOPs, learn " +
                  c.task_text() + "."};
  std::vector<report_item> first{figures, all};
  if (c.answers_at_each_position()) first.push_back(last);
  first.push_back(numbers);
  page.sections.push_back({"What they learn", "All saw the same rows in the same order.", std::move(first)});
  maps.push_back(detail::diversity_table(c.runs));
  page.sections.push_back({"Which experts a depth uses", "One row a depth, the first at the top.", std::move(maps)});
  if (!readings.empty())
    page.sections.push_back({"Which depth reads which", "What depth attention weighs, on average.", std::move(readings)});
  page.sections.push_back({"Training", "", {loss, load}});
  page.footer = "Steps of " + std::to_string(c.rows) + " rows of " + std::to_string(c.length) + " tokens, AdamW at " +
                number_text(c.learning_rate) + ", seed " + std::to_string(c.seed) + ". One seed says little.";
  return page;
}

}  // namespace examples
