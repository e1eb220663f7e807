// The depth-recurrent mixtures, compiled.
#include "mixture_training_of.hpp"

namespace examples {

std::unique_ptr<mixture_training> make_recurrent_mixture(std::string_view name, const gyre::cpu& device, mixture_rules rules) {
  if (name == "attending-8") return std::make_unique<mixture_training_of<attending_8, 8>>(device, std::move(rules));
  if (name == "recurrent-8") return std::make_unique<mixture_training_of<recurrent_8, 8>>(device, std::move(rules));
  if (name == "attending-16") return std::make_unique<mixture_training_of<attending_16, 16>>(device, std::move(rules));
  gyre::fail("no recurrent mixture is named '", name, "'; there are attending-8, recurrent-8 and attending-16");
}

}  // namespace examples
