#include <gyre/backend/cuda.hpp>

#include "trials.hpp"

template <>
void examples::add_simulated_cuda<gyre::bfloat16>(trials& all) {
  auto [left, right] = keep_backends(all, gyre::simulated_cuda());
  add_checks<gyre::bfloat16>(all, left, right);
}
