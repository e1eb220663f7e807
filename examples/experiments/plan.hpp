// Which runs the comparison of mixtures consists of: two learning rates on the first seed, the better one on the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results.hpp"

namespace experiments {

/// What all runs share, and what they vary.
struct plan {
  experiment common;                                       // rows, steps or minutes
  double tokens = 0;                                       // of each run, where there are neither steps nor minutes
  std::vector<std::pair<std::string, gyre::index>> tasks;  // with the length of a row
  std::vector<std::string> models{"attending-8", "recurrent-8", "layered-8", "layered-16"};
  std::vector<double> learning_rates;
  std::vector<std::uint64_t> seeds{0, 1, 2};
  /// One run each on the first task and seed, at the better rate of the second name.
  std::vector<std::pair<std::string, std::string>> deep{{"attending-16", "attending-8"}, {"layered-32", "layered-16"}};
};

inline const result* find(const std::vector<result>& all, const experiment& e) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const result& r) { return r.of == e; });
  return at == all.end() ? nullptr : &*at;
}

/// Whether a has learned better: 90% right after fewer tokens, or, where neither got so far, more answers right at the end.
inline bool better(const result& a, const result& b) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const double at_a = a.tokens_to_90.value_or(never), at_b = b.tokens_to_90.value_or(never);
  return at_a != at_b ? at_a < at_b : a.accuracy > b.accuracy;
}

/// All runs of the plan that can be named by now: a run of another seed only when the rates of the first are compared.
inline std::vector<experiment> named_runs(const plan& p, const std::vector<result>& done) {
  std::vector<experiment> first, later;
  const auto of = [&](const std::pair<std::string, gyre::index>& task, const std::string& model, double rate,
                      std::uint64_t seed) {
    experiment e = p.common;
    e.task = task.first, e.length = task.second, e.model = model, e.learning_rate = rate, e.seed = seed;
    if (p.tokens > 0) e.steps = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(p.tokens) / e.step_tokens());
    return e;
  };
  // The better rate on the first seed, once all are done.
  const auto chosen = [&](const std::pair<std::string, gyre::index>& task, const std::string& model) -> std::optional<double> {
    const result* best = nullptr;
    for (const double rate : p.learning_rates) {
      const result* r = find(done, of(task, model, rate, p.seeds.front()));
      if (r == nullptr) return std::nullopt;
      if (best == nullptr || better(*r, *best)) best = r;
    }
    return best->of.learning_rate;
  };
  for (const auto& task : p.tasks)
    for (const std::string& model : p.models) {
      for (const double rate : p.learning_rates) first.push_back(of(task, model, rate, p.seeds.front()));
      if (const auto rate = chosen(task, model))
        for (std::size_t i = 1; i < p.seeds.size(); ++i) later.push_back(of(task, model, *rate, p.seeds[i]));
    }
  for (const auto& [model, like] : p.deep)
    if (const auto rate = chosen(p.tasks.front(), like)) later.push_back(of(p.tasks.front(), model, *rate, p.seeds.front()));
  first.insert(first.end(), later.begin(), later.end());
  return first;
}

}  // namespace experiments
