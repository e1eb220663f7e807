// The layered mixtures, compiled.
#include "mixture_training_of.hpp"

namespace examples {

std::unique_ptr<mixture_training> make_layered_mixture(std::string_view name, const gyre::cpu& device, mixture_rules rules) {
  if (name == "layered-8") return std::make_unique<mixture_training_of<layered_8, 8>>(device, std::move(rules));
  if (name == "layered-16") return std::make_unique<mixture_training_of<layered_16, 16>>(device, std::move(rules));
  if (name == "layered-32") return std::make_unique<mixture_training_of<layered_32, 32>>(device, std::move(rules));
  gyre::fail("no layered mixture is named '", name, "'; there are layered-8, layered-16 and layered-32");
}

}  // namespace examples
