#include <gyre/backend/cpu.hpp>

#include "trials.hpp"

template <>
void examples::add_cpu<gyre::bfloat16>(trials& all, int threads) {
  auto [left, right] = keep_backends(all, gyre::cpu(threads));
  add_checks<gyre::bfloat16>(all, left, right);
}
