// Trials whose operands and results are written to files and read from them.
#include <gyre/parity/files.hpp>

#include <gyre/backend/cpu.hpp>

#include "trials.hpp"

namespace {

template <class T>
void add(examples::trials& all, int threads) {
  auto [left, right] = examples::keep_backends(all, gyre::cpu(threads));
  for (gyre::parity::trial_files& f : gyre::parity::all_files<T>(left, right)) all.files.push_back(std::move(f));
}

}  // namespace

void examples::add_files(trials& all, std::string_view type, int threads) {
  if (type == "float") return add<float>(all, threads);
  if (type == "double") return add<double>(all, threads);
  add<gyre::bfloat16>(all, threads);
}
