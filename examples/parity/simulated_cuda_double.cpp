#include <gyre/backend/cuda.hpp>

#include "trials.hpp"

template <>
void examples::add_simulated_cuda<double>(trials& all) {
  add_trials<double>(all, gyre::simulated_cuda());
}
