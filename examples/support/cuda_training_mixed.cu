// Trainings of the catalogue's models on a GPU in bf16_mixed: for nvcc.
#include <gyre/backend/cuda.hpp>

#include "catalogue_training.hpp"

namespace examples {

std::unique_ptr<training> make_mixed_cuda_training(const settings& s, std::uint64_t total) {
  return make_training_in<gyre::bf16_mixed>(s, gyre::cuda(), total);
}

}  // namespace examples
