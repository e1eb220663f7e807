#include "trials.hpp"

#include <cmath>
#include <limits>
#include <span>
#include <vector>

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

TEMPLATE_TEST_CASE("logits of -infinity take no part in cross-entropy of cuda", "[cuda_kernels]", float, double) {
  constexpr gyre::index vocabulary = 600;  // some threads see nothing else
  gyre_test::shuffled_cuda device;
  auto& machine = device.device().machine();
  const auto logits = machine.template allocate<TestType>(vocabulary), losses = machine.template allocate<TestType>(1);
  for (TestType& each : logits) each = -std::numeric_limits<TestType>::infinity();
  logits[3] = logits[500] = 7;
  const std::vector<gyre::token> targets{500};
  device.cross_entropy(gyre::matrix_view<TestType>(logits.data(), 1, vocabulary), std::span<const gyre::token>(targets), 1,
                       losses.data(), true);
  CHECK(losses[0] == Approx(std::log(2.0)));
  for (std::size_t v = 0; v < vocabulary; ++v) CHECK(logits[v] == Approx(v == 3 ? 0.5 : v == 500 ? -0.5 : 0.0));
}
