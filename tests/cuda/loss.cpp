#include "trials.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("losses of cuda agree with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::cross_entropy, operation::sum>();
}

TEMPLATE_TEST_CASE("cross-entropy of cuda takes any vocabulary", "[cuda_kernels]", float, double) {
  constexpr gyre::index packs = gyre::detail::cross_entropy_threads * gyre::detail::pack_width<TestType>;
  for (const gyre::index vocabulary : {packs, 3 * packs + 5, gyre::detail::cross_entropy_long_row, gyre::index{65537}})
    gyre_test::check_trial<TestType, operation::cross_entropy>(
        {{"rows", 2}, {"vocabulary", vocabulary}, {"gradient", 1}, {"spread", 5}, {"offset", 1}});
}

TEMPLATE_TEST_CASE("sums of cuda add up all their chunks", "[cuda_kernels]", float, double) {
  const gyre::index count = 2 * gyre::detail::sum_chunk<TestType> + 1;
  for (const gyre::index offset : {0, 1})
    gyre_test::check_trial<TestType, operation::sum>({{"count", count}, {"offset", offset}});
}
