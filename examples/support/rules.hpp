// Rules of a training that are chosen at run time: one type for all of them, so that a trainer is compiled once a model.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include <gyre/policy/depth.hpp>
#include <gyre/train/facts.hpp>
#include <gyre/train/schedule.hpp>

namespace examples {

/// Any of the library's depth rules, with or without a curriculum. Draws and facts are those of the rule inside.
struct any_depth {
  using choice = std::variant<gyre::fixed_depth, gyre::uniform_depth, gyre::lognormal_poisson>;
  choice inner = gyre::fixed_depth{};
  std::uint64_t curriculum_steps = 0;  // the total of optimiser steps that a curriculum follows; 0: no curriculum

  any_depth(choice rule = gyre::fixed_depth{}, std::uint64_t curriculum = 0)
      : inner(std::move(rule)), curriculum_steps(curriculum) {}

  /// f(rule) of the rule inside, which is a gyre::curriculum if there is one.
  template <class F>
  auto visit(F&& f) const {
    return std::visit(
        [&]<class Rule>(const Rule& rule) {
          return curriculum_steps > 0 ? f(gyre::curriculum<Rule>{rule, curriculum_steps}) : f(rule);
        },
        inner);
  }
  gyre::depth_draw draw(gyre::seed s, std::uint64_t step, std::uint32_t micro_batch = 0) const {
    return visit([&](const auto& rule) { return rule.draw(s, step, micro_batch); });
  }
  double mean_depth() const {
    return visit([](const auto& rule) { return rule.mean_depth(); });
  }
  gyre::depth_draw most_draw() const {
    return visit([](const auto& rule) { return rule.most_draw(); });
  }
  void validate() const {
    visit([](const auto& rule) { rule.validate(); });
  }
};
inline gyre::json facts(const any_depth& rule) {
  return rule.visit([](const auto& inner) { return gyre::facts(inner); });
}
static_assert(gyre::depth_rule<any_depth>);

/// Any of the library's schedules. A warm-up followed by a constant rate is a cool-down that starts at 1.
struct any_schedule {
  std::variant<gyre::warmup_constant_cooldown, gyre::warmup_cosine> inner;

  double operator()(std::uint64_t step, std::uint64_t total) const {
    return std::visit([&](const auto& schedule) { return schedule(step, total); }, inner);
  }
  void validate() const {
    std::visit([](const auto& schedule) { schedule.validate(); }, inner);
  }
};
inline gyre::json facts(const any_schedule& schedule) {
  return std::visit([](const auto& inner) { return gyre::facts(inner); }, schedule.inner);
}
static_assert(gyre::learning_rate_schedule<any_schedule>);

}  // namespace examples
