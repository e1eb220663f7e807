// How many optimiser steps fit into a time: measured, then fixed, so that the training is the same whatever the clock does later.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "rules.hpp"
#include "terminal.hpp"
#include "training.hpp"
#include "training_data.hpp"

namespace examples {

/// Two years: what is longer is a mistake.
inline constexpr double most_minutes = 1e6;

struct time_budget {
  std::uint64_t steps = 0;       // that fit; 0: stopped before they were known
  double seconds_per_flop = 0;   // as measured
  double tokens_per_second = 0;  // at the depths that were measured
  double measuring = 0;          // seconds that it took
};

/// Steps of a training that fit into `seconds`. Runs the first steps of `scratch`, a trainer like the real one that is thrown
/// away afterwards, for about a fiftieth of the time; then adds up the FLOPs of the depths that `rule_of(total)` will draw, step
/// by step, until the time is full. `rule_of` gives the depth rule of a training of so many steps: a curriculum depends on it.
/// The position of `data` stays. `stop` is asked after every step. `Watch` tells whose seconds: the clock's, or the processor's.
template <class Watch = stopwatch, class RuleOf>
time_budget steps_within(double seconds, training& scratch, training_data& data, gyre::index micro_batches, RuleOf rule_of,
                         const std::function<bool()>& stop = nullptr) {
  gyre::require(seconds > 0 && seconds <= 60 * most_minutes, "a time budget of ", seconds / 60,
                " minutes; it must be positive and at most ", most_minutes);
  const auto stopped = [&] { return stop && stop(); };
  const gyre::json begin = data.position();
  std::map<std::pair<int, int>, double> known;  // FLOPs of a step by its depth
  const auto flops = [&](gyre::depth_draw draw) {
    double& cost = known[{draw.free_steps, draw.gradient_steps}];
    if (cost == 0) cost = static_cast<double>(micro_batches) * scratch.flops(data.rows(), data.length(), draw);
    return cost;
  };
  double tokens = 0;
  const auto step = [&] {
    const gyre::depth_draw draw = scratch.next_depth();
    for (gyre::index part = 0; part < micro_batches; ++part)
      scratch.accumulate(data.next(scratch.steps() + 1, static_cast<std::uint32_t>(part), draw.total()));
    tokens += static_cast<double>(scratch.update().tokens);
    return flops(draw);
  };

  const Watch all;
  step();  // takes memory and wakes caches: does not count
  const Watch watch;
  double work = 0, took = 0;
  tokens = 0;
  for (int n = 0; !stopped() && (n < 4 || took < seconds / 50); ++n) work += step(), took = watch.seconds();
  data.seek(gyre::json_field(begin, "position"));

  time_budget out;
  if (stopped()) return out;
  out.seconds_per_flop = took / work, out.tokens_per_second = tokens / took, out.measuring = all.seconds();
  const double room = (std::max)(0.0, seconds - out.measuring) / out.seconds_per_flop;
  const gyre::seed seed = scratch.options().seed;
  const auto fits = [&](std::uint64_t total) {
    const any_depth rule = rule_of(total);
    double sum = 0;
    for (std::uint64_t t = 1; t <= total && sum <= room && !stopped(); ++t) sum += flops(rule.draw(seed, t));
    return sum <= room && !stopped();
  };
  std::uint64_t low = 1, high = 2;  // at least one step, whatever the time
  while (fits(high)) low = high, high *= 2;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  if (!stopped()) out.steps = low;
  return out;
}

}  // namespace examples
