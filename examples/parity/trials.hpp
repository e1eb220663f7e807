// The trials of all operations on the reference and another backend. A unit for each backend and scalar type: they take long to compile.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/parity/files.hpp>

namespace examples {

struct trials {
  std::vector<gyre::parity::check> checks;
  std::vector<gyre::parity::trial_files> files;
  std::vector<std::shared_ptr<void>> backends;  // what they run on
};

/// `threads`: of the cpu backend.
template <class T>
void add_cpu(trials& all, int threads);
/// For scalars of `type`: float, double or bf16.
void add_files(trials& all, std::string_view type, int threads);
/// The kernels of the cuda backend on the interpreter.
template <class T>
void add_simulated_cuda(trials& all);

/// The backends that `all` then keeps, for what is made of them.
template <class Backend>
std::pair<gyre::reference&, Backend&> keep_backends(trials& all, Backend backend) {
  const auto left = std::make_shared<gyre::reference>();
  const auto right = std::make_shared<Backend>(std::move(backend));
  all.backends.push_back(left), all.backends.push_back(right);
  return {*left, *right};
}
template <class T, class Backend>
void add_checks(trials& all, gyre::reference& left, Backend& right) {
  for (gyre::parity::check& c : gyre::parity::all_checks<T>(left, right)) all.checks.push_back(std::move(c));
}

}  // namespace examples
