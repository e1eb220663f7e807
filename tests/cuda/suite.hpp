// Operations of the `cuda` backend on the interpreter, compared with the reference.
#pragma once

#include <gyre/parity/catch.hpp>

#include <cstdlib>
#include <string>

#include <gyre/backend/cuda.hpp>
#include <gyre/backend/reference.hpp>
#include <gyre/parity/suite.hpp>

#include "cuda/transfers.hpp"

namespace gyre_test {

/// Every launch runs its threads in another order: a result that depends on it is not repeatable.
class shuffled_device : public gyre::simulated_device {
 public:
  gyre::simt::stream stream() {
    using gyre::simt::thread_order;
    constexpr thread_order orders[] = {thread_order::forward, thread_order::reverse, thread_order::random};
    machine().settings.order = orders[launches_ % 3];
    machine().settings.seed = ++launches_;
    return gyre::simulated_device::stream();
  }

 private:
  std::uint64_t launches_ = 0;
};
using shuffled_cuda = gyre::basic_cuda<shuffled_device>;

/// Trials of one operation: a third of them where every access is watched, which takes longer.
template <class T, gyre::operation Op>
void check_operation(gyre::index trials) {
  namespace parity = gyre::parity;
  gyre::reference left;
  shuffled_cuda right;
  const parity::suite_options options{.seed = 100,
                                      .trials = gyre::simt::machine::watches_accesses() ? (trials + 2) / 3 : trials,
                                      .program = "./run parity --right simulated_cuda",
                                      .shrinks = std::getenv("GYRE_FAULT") == nullptr};  // tests/mutants: nobody reads it
  const parity::outcome o = parity::run_check(parity::check_of<Op, T>(left, right), options);
  INFO(gyre::operation_names[static_cast<std::size_t>(Op)]);
  INFO(o.failure);
  CHECK(o.passed());
  CHECK(o.worst.excess <= 1);
  CHECK(o.elements > 0);
  constexpr bool has_kernels = !gyre::operation_names[static_cast<std::size_t>(Op)].starts_with("product");  // cuBLAS's
  if constexpr (has_kernels && sizeof(T) < 8)
    if (gyre::simt::machine::watches_accesses()) check_transfers<T, Op>(right);
}

template <class T, gyre::operation... Op>
void check_operations(gyre::index trials = 30) {
  (check_operation<T, Op>(trials), ...);
}

}  // namespace gyre_test
