// Trainings of the catalogue's models on a GPU in fp32: for nvcc.
#include <gyre/backend/cuda.hpp>

#include "catalogue_training.hpp"

namespace examples {

std::unique_ptr<training> make_cuda_training(const settings& s, std::uint64_t total) {
  return make_training_in<gyre::fp32>(s, gyre::cuda(), total);
}

}  // namespace examples
