#include <gyre/backend/cpu.hpp>

#include "trials.hpp"

template <>
void examples::add_cpu<float>(trials& all, int threads) {
  add_trials<float>(all, gyre::cpu(threads));
}
