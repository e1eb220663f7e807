#include <gyre/backend/cuda.hpp>

#include "passage_of.hpp"

gyre_test::passage gyre_test::pass_on_cuda(const std::filesystem::path& from, int steps, const std::filesystem::path& to,
                                           int beyond) {
  return pass_on(gyre::simulated_cuda(), from, steps, to, beyond);
}
