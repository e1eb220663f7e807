#include <gyre/backend/cpu.hpp>

#include "passage_of.hpp"

gyre_test::passage gyre_test::pass_on_cpu(const std::filesystem::path& from, int steps, const std::filesystem::path& to,
                                          int beyond) {
  return pass_on(gyre::cpu(1), from, steps, to, beyond);
}
