#include "trials.hpp"

#include <cmath>

using gyre::operation;

TEMPLATE_TEST_CASE("updates of cuda agree with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::combine, operation::unit, operation::adamw_update>(60);
}

TEMPLATE_TEST_CASE("sums of updates of cuda agree with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::squared_norm, operation::clipped_atan2_update>(60);
}

TEMPLATE_TEST_CASE("sums of squares and moments of cuda add up all their chunks", "[cuda_kernels]", float, double) {
  constexpr gyre::index chunk = gyre::detail::sum_chunk<TestType>;
  for (const gyre::index count : {chunk, 2 * chunk + 1, 3 * chunk - 1}) {
    gyre_test::check_trial<TestType, operation::squared_norm>({{"count", count}});
    gyre_test::check_trial<TestType, operation::clipped_atan2_update>({{"count", count}, {"offset", 1}});
  }
}

TEMPLATE_TEST_CASE("moments of cuda keep numbers that are not finite", "[cuda_kernels]", float, double) {
  for (const gyre::index special : {1, 2, 3})
    gyre_test::check_trial<TestType, operation::clipped_atan2_update>({{"count", 7}, {"special", special}});
}

TEST_CASE("one block of cuda adds the sums of more chunks than it has threads", "[cuda_kernels]") {
  gyre_test::shuffled_device device;
  for (const unsigned chunks : {1u, gyre::detail::sum_threads, 2 * gyre::detail::sum_threads + 3}) {
    const auto sums = device.machine().allocate<double>(chunks + 1, "sums");
    for (unsigned n = 0; n < chunks; ++n) sums[n] = n + 1;
    gyre::simt::launch(gyre::detail::sum_of_sums<double, gyre::detail::whole_sum>, 1, gyre::detail::sum_threads, 0,
                       device.stream(), gyre::index(chunks), static_cast<const double*>(sums.data()), gyre::detail::whole_sum{},
                       sums.data() + chunks);
    CHECK(sums[chunks] == chunks * (chunks + 1.0) / 2);
  }
}

TEST_CASE("moments of cuda without a floor have no term behind the last", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  auto& machine = device.device().machine();
  const auto g = machine.allocate<float>(5), m = machine.allocate<float>(5), v = machine.allocate<float>(5);
  for (float& each : g) each = 2;
  for (float& each : m) each = 0;
  for (float& each : v) each = 0;
  const auto w = machine.allocate<float>(5);
  for (float& each : w) each = 0;
  // m = 1 and v = 2, so g^2 / v is 2, and 0 / 0 behind the last would leave the rate as it is.
  device.clipped_atan2_update(w.data(), g.data(), m.data(), v.data(), 5, {1, 0.5, 0.5, 0, 0, 1, 1});
  for (const float each : w) CHECK(each == Approx(-std::atan2(1, std::sqrt(2.0)) / std::sqrt(2.0)));
}

TEST_CASE("unit of cuda takes vectors whose norm has no inverse in their type", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  auto& machine = device.device().machine();
  const auto x = machine.allocate<float>(5), y = machine.allocate<float>(5);
  const auto squares = machine.allocate<double>(1);
  for (std::size_t i = 0; i < 5; ++i) x[i] = static_cast<float>(i) * 0x1p-140f;
  device.squared_norm(static_cast<const float*>(x.data()), 5, squares.data());
  device.unit(static_cast<const float*>(x.data()), static_cast<const double*>(squares.data()), y.data(), 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(y[i] == Approx(static_cast<double>(i) / std::sqrt(30.0)));
}
