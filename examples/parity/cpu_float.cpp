#include <gyre/backend/cpu.hpp>

#include "trials.hpp"

template <>
void examples::add_cpu<float>(trials& all, int threads) {
  auto [left, right] = keep_backends(all, gyre::cpu(threads));
  add_checks<float>(all, left, right);
  for (gyre::parity::trial_files& f : gyre::parity::all_files<float>(left, right)) all.files.push_back(std::move(f));
}
