#include <gyre/backend/cuda.hpp>

#include "trials.hpp"

template <>
void examples::add_simulated_cuda<float>(trials& all) {
  add_trials<float>(all, gyre::simulated_cuda());
}
