// Mixtures in training behind one interface. Their types are compiled apart, in mixture_trainings_*.cpp, once for all programs.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gyre/analysis/expert_use.hpp>
#include <gyre/backend/cpu.hpp>
#include <gyre/train/adamw.hpp>

#include "rules.hpp"
#include "training.hpp"

namespace examples {

/// What a mixture does on some rows, beside its answers.
struct mixture_examination {
  gyre::expert_use_report experts;
  std::vector<std::vector<double>> reading;  // (reader, read): mean weights of depth attention; empty without one
};

class mixture_training : public training {
 public:
  /// The steps that it is made for: 1 for a stack of layers.
  virtual int steps_of_use() const = 0;
  /// Layers that a token passes.
  virtual int depth() const = 0;
  /// Forward FLOPs a token, in the closed form, for rows of `length`.
  virtual gyre::index forward_flops(gyre::index length) const = 0;
  virtual mixture_examination examine(std::span<const gyre::batch> rows) const = 0;
};

/// Numbers of a training of a mixture.
struct mixture_rules {
  gyre::adamw rule{};
  any_schedule schedule{};
  gyre::trainer_options options{};
};

/// "attending-8" (DR+DA), "recurrent-8" (DR), "layered-8": matched; "layered-16" and "attending-16": matched; "layered-32".
inline const std::vector<std::string>& mixture_names() {
  static const std::vector<std::string> names{"attending-8", "recurrent-8",  "layered-8",
                                              "layered-16",  "attending-16", "layered-32"};
  return names;
}
/// How a report calls it: "DR+DA 8".
inline std::string mixture_title(std::string_view name) {
  const std::size_t dash = name.find('-');
  const std::string_view kind = name.substr(0, dash), depth = name.substr(dash + 1);
  return std::string(kind == "attending" ? "DR+DA" : kind == "recurrent" ? "DR" : kind) + ' ' + std::string(depth);
}

std::unique_ptr<mixture_training> make_recurrent_mixture(std::string_view name, const gyre::cpu& device, mixture_rules rules);
std::unique_ptr<mixture_training> make_layered_mixture(std::string_view name, const gyre::cpu& device, mixture_rules rules);

/// A new model with its trainer. Throws gyre::error for an unknown name.
inline std::unique_ptr<mixture_training> make_mixture(std::string_view name, const gyre::cpu& device, mixture_rules rules) {
  if (name.starts_with("layered")) return make_layered_mixture(name, device, std::move(rules));
  return make_recurrent_mixture(name, device, std::move(rules));
}

}  // namespace examples
