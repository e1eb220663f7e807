#include "trials.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("updates of cuda agree with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::combine, operation::adamw_update, operation::atan2_update>();
}

TEMPLATE_TEST_CASE("sums of updates of cuda agree with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::squared_norm, operation::clipped_moments>();
}

TEMPLATE_TEST_CASE("sums of cuda add up all their chunks", "[cuda_kernels]", float, double) {
  constexpr gyre::index chunk = gyre::detail::sum_chunk<TestType>;
  for (const gyre::index count : {chunk, 2 * chunk + 1, 3 * chunk - 1}) {
    gyre_test::check_trial<TestType, operation::squared_norm>({{"count", count}});
    gyre_test::check_trial<TestType, operation::clipped_moments>({{"count", count}, {"offset", 1}});
  }
}

TEST_CASE("one block of cuda adds the sums of more chunks than it has threads", "[cuda_kernels]") {
  gyre_test::shuffled_device device;
  for (const unsigned chunks : {1u, gyre::detail::sum_threads, 2 * gyre::detail::sum_threads + 3}) {
    const auto sums = device.machine().allocate<double>(chunks + 1, "sums");
    for (unsigned n = 0; n < chunks; ++n) sums[n] = n + 1;
    gyre::simt::launch(gyre::detail::sum_of_sums<>, 1, gyre::detail::sum_threads, 0, device.stream(), gyre::index(chunks),
                       sums.data());
    CHECK(sums[chunks] == chunks * (chunks + 1.0) / 2);
  }
}
