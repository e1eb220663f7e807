#include <gyre/backend/cpu.hpp>

#include "trials.hpp"

template <>
void examples::add_cpu<double>(trials& all, int threads) {
  auto [left, right] = keep_backends(all, gyre::cpu(threads));
  add_checks<double>(all, left, right);
}
