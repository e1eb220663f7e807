#include <gyre/backend/cuda.hpp>

#include "trials.hpp"

template <>
void examples::add_simulated_cuda<gyre::bfloat16>(trials& all) {
  add_trials<gyre::bfloat16>(all, gyre::simulated_cuda());
}
