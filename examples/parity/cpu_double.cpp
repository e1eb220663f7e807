#include <gyre/backend/cpu.hpp>

#include "trials.hpp"

template <>
void examples::add_cpu<double>(trials& all, int threads) {
  add_trials<double>(all, gyre::cpu(threads));
}
