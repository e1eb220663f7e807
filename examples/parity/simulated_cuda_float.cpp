#include <gyre/backend/cuda.hpp>

#include "trials.hpp"

template <>
void examples::add_simulated_cuda<float>(trials& all) {
  auto [left, right] = keep_backends(all, gyre::simulated_cuda());
  add_checks<float>(all, left, right);
}
