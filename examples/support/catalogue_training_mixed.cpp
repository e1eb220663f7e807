// Trainings of the catalogue's models in bf16_mixed.
#include "catalogue_training.hpp"

namespace examples {

std::unique_ptr<training> make_mixed_training(const settings& s, const gyre::cpu& device, std::uint64_t total) {
  return make_training_in<gyre::bf16_mixed>(s, device, total);
}

}  // namespace examples
