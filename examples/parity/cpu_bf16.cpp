#include <gyre/backend/cpu.hpp>

#include "trials.hpp"

template <>
void examples::add_cpu<gyre::bfloat16>(trials& all, int threads) {
  add_trials<gyre::bfloat16>(all, gyre::cpu(threads));
}
