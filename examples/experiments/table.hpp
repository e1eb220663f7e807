// Results as markdown, for docs/evidence.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../support/mixture_training.hpp"
#include "plan.hpp"

namespace experiments {

namespace detail {

inline std::string millions(double tokens) { return examples::fixed_text(tokens / 1e6, 2); }
inline std::string reached(const result& r) { return r.tokens_to_90 ? millions(*r.tokens_to_90) : "> " + millions(r.tokens); }
inline std::string or_dash(std::optional<double> value, int decimals) {
  return value ? examples::fixed_text(*value, decimals) : "-";
}
inline std::string row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += ' ' + cell + " |";
  return out + '\n';
}
inline std::string head(const std::vector<std::string>& cells) {
  return row(cells) + row(std::vector<std::string>(cells.size(), "---"));
}
inline std::size_t place_of(const std::string& model) {
  const auto& names = examples::mixture_names();
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), model) - names.begin());
}

}  // namespace detail

/// A table of all runs of each task and budget, and one of medians over the seeds at the rate that has the most of them.
inline std::string markdown(std::vector<result> results) {
  using detail::or_dash;
  const auto group_of = [](const result& r) { return std::tuple(r.of.task, r.of.length, r.of.rows, r.of.minutes, r.of.steps); };
  std::stable_sort(results.begin(), results.end(), [&](const result& a, const result& b) {
    return std::tuple(group_of(a), detail::place_of(a.of.model), a.of.learning_rate, a.of.seed) <
           std::tuple(group_of(b), detail::place_of(b.of.model), b.of.learning_rate, b.of.seed);
  });
  std::string out;
  for (auto begin = results.begin(); begin != results.end();) {
    const auto end = std::find_if(begin, results.end(), [&](const result& r) { return group_of(r) != group_of(*begin); });
    const experiment& e = begin->of;
    const std::string budget =
        e.steps > 0 ? "--steps " + std::to_string(e.steps) : "--minutes " + examples::number_text(e.minutes);
    out += "### " + e.task + ", rows of " + std::to_string(e.length) + "\n\n`./run experiments --task " + e.task +
           " --length " + std::to_string(e.length) + " --rows " + std::to_string(e.rows) + ' ' + budget +
           " --model … --lr … --seed …`. Millions of tokens until 90% of held-out answers are right (>: not within the "
           "budget).\n\n";
    out += detail::head({"model", "parameters", "MFLOP a token", "lr", "seed", "tokens, M", "to 90%, M", "right",
                         "right at the end", "experts", "exp(entropy) a depth", "over all depths", "sets a depth",
                         "distinct of a token", "used at 7+ depths", "hits", "date"});
    for (auto r = begin; r != end; ++r)
      out += detail::row({examples::mixture_title(r->of.model), examples::number_text(r->parameters, 9),
                          examples::fixed_text(r->forward_flops / 1e6, 3), examples::number_text(r->of.learning_rate),
                          std::to_string(r->of.seed), detail::millions(r->tokens), detail::reached(*r),
                          examples::fixed_text(r->accuracy, 4), examples::fixed_text(r->last_accuracy, 4),
                          examples::number_text(r->active) + " of " + examples::number_text(r->experts),
                          examples::fixed_text(r->per_depth_diversity, 1), or_dash(r->pooled_diversity, 1),
                          examples::fixed_text(r->distinct_sets, 0), or_dash(r->distinct_per_token, 3),
                          or_dash(r->used_at_7, 3), examples::fixed_text(r->hits, 0), r->date});

    out +=
        '\n' + detail::head({"model", "lr", "seeds", "median tokens to 90%, M", "median right", "median exp(entropy) a depth"});
    for (auto r = begin; r != end;) {
      const auto next = std::find_if(r, end, [&](const result& x) { return x.of.model != r->of.model; });
      std::map<double, std::vector<const result*>> by_rate;
      for (auto x = r; x != next; ++x) by_rate[x->of.learning_rate].push_back(&*x);
      // The rate that went on to further seeds; with one seed each, the better one.
      const auto best = std::max_element(by_rate.begin(), by_rate.end(), [](const auto& a, const auto& b) {
        if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
        return better(*b.second.front(), *a.second.front());
      });
      std::vector<const result*> runs = best->second;
      const auto median = [&](auto value) {
        std::vector<double> all;
        for (const result* x : runs) all.push_back(value(*x));
        std::sort(all.begin(), all.end());
        return all.size() % 2 == 1 ? all[all.size() / 2] : (all[all.size() / 2 - 1] + all[all.size() / 2]) / 2;
      };
      const double tokens =
          median([](const result& x) { return x.tokens_to_90.value_or(std::numeric_limits<double>::infinity()); });
      out += detail::row({examples::mixture_title(r->of.model), examples::number_text(best->first), std::to_string(runs.size()),
                          tokens < std::numeric_limits<double>::infinity() ? detail::millions(tokens) : "not reached",
                          examples::fixed_text(median([](const result& x) { return x.accuracy; }), 4),
                          examples::fixed_text(median([](const result& x) { return x.per_depth_diversity; }), 1)});
      r = next;
    }
    out += '\n';
    begin = end;
  }
  return out;
}

}  // namespace experiments
