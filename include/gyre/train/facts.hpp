// The numbers of a training's rules, for checkpoints and reports. A rule of a user's own may offer facts(rule) in its
// namespace.
#pragma once

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include <gyre/io/json.hpp>
#include <gyre/io/json_writer.hpp>
#include <gyre/policy/depth.hpp>
#include <gyre/train/adamw.hpp>
#include <gyre/train/huginn_adam.hpp>
#include <gyre/train/muon.hpp>
#include <gyre/train/schedule.hpp>
#include <gyre/train/trainer.hpp>

GYRE_BEGIN

namespace detail {

struct fact {
  const char* name;
  json value;
};
inline json object_of(std::vector<fact> list) {
  json out = json::object();
  for (fact& f : list) out.set(f.name, std::move(f.value));
  return out;
}

}  // namespace detail

inline json facts(const adamw& r) {
  return detail::object_of(
      {{"name", adamw::name}, {"lr", r.lr}, {"beta1", r.beta1}, {"beta2", r.beta2}, {"eps", r.eps}, {"decay", r.decay}});
}
inline json facts(const huginn_adam& r) {
  return detail::object_of({{"name", huginn_adam::name},
                            {"lr", r.lr},
                            {"beta1", r.beta1},
                            {"beta2", r.beta2},
                            {"eps", r.eps},
                            {"absolute_decay", r.absolute_decay},
                            {"running_start", r.running_start}});
}
inline json facts(const muon& r) {
  return detail::object_of(
      {{"name", muon::name}, {"lr", r.lr}, {"momentum", r.momentum}, {"decay", r.decay}, {"others", facts(r.others)}});
}

inline json facts(const fixed_depth& r) {
  return detail::object_of({{"name", "fixed_depth"}, {"steps", r.steps}, {"backprop", r.backprop}});
}
inline json facts(const uniform_depth& r) {
  return detail::object_of({{"name", "uniform_depth"}, {"low", r.low}, {"high", r.high}, {"backprop", r.backprop}});
}
inline json facts(const lognormal_poisson& r) {
  return detail::object_of({{"name", "lognormal_poisson"}, {"mean", r.mean}, {"sigma", r.sigma}, {"backprop", r.backprop}});
}
template <class Rule>
json facts(const curriculum<Rule>& r) {
  return detail::object_of({{"name", "curriculum"}, {"total_steps", r.total_steps}, {"rule", facts(r.rule)}});
}

inline json facts(const constant_rate&) { return detail::object_of({{"name", "constant_rate"}}); }
inline json facts(const warmup_constant_cooldown& r) {
  return detail::object_of(
      {{"name", "warmup_constant_cooldown"}, {"warm_up", r.warm_up}, {"cooldown_start", r.cooldown_start}, {"floor", r.floor}});
}
inline json facts(const warmup_cosine& r) {
  return detail::object_of({{"name", "warmup_cosine"}, {"warm_up", r.warm_up}, {"floor", r.floor}});
}

inline json facts(const trainer_options& o) {
  json clip = std::isfinite(o.clip) ? json(o.clip) : json("none");
  return detail::object_of({{"seed", o.seed.value},
                            {"total_steps", o.total_steps},
                            {"clip", std::move(clip)},
                            {"state_scale", o.state_scale},
                            {"balance", detail::object_of({{"rate", o.balance.rate}, {"frozen", o.balance.frozen}})},
                            {"depth_per_micro_batch", o.depth_per_micro_batch}});
}

namespace detail {

template <class Rule>
json facts_of(const Rule& rule) {
  if constexpr (requires { facts(rule); })
    return facts(rule);
  else
    return object_of({{"name", "custom"}});
}

/// Appends "path: value there, value here" for every member that differs.
inline void list_differences(const json& there, const json& here, const std::string& path, std::vector<std::string>& out) {
  const auto text = [](const json* value) { return value != nullptr ? write_json(*value) : std::string("nothing"); };
  if (there.kind() != json_kind::object || here.kind() != json_kind::object) {
    if (there != here) out.push_back(path + ": " + text(&there) + " in the checkpoint, " + text(&here) + " here");
    return;
  }
  for (std::size_t i = 0; i < there.keys().size(); ++i) {
    const std::string at = path.empty() ? there.keys()[i] : path + "." + there.keys()[i];
    if (const json* other = here.find(there.keys()[i]))
      list_differences(there.values()[i], *other, at, out);
    else
      out.push_back(at + ": " + text(&there.values()[i]) + " in the checkpoint, nothing here");
  }
  for (std::size_t i = 0; i < here.keys().size(); ++i)
    if (there.find(here.keys()[i]) == nullptr)
      out.push_back((path.empty() ? "" : path + ".") + here.keys()[i] + ": nothing in the checkpoint, " +
                    text(&here.values()[i]) + " here");
}

}  // namespace detail

GYRE_END
