#include "trials.hpp"

#include <array>
#include <bit>
#include <vector>

using gyre::operation;

TEMPLATE_TEST_CASE("initial states of cuda agree with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::random_normal>(60);
}

TEST_CASE("initial states of cuda have the bits of the reference's", "[cuda_kernels]") {
  const gyre::index cols = 2 * gyre::detail::random_normal_tile + 3;
  gyre::batch_layout layout;
  for (const gyre::index count : {0, 2, 0, 0, 5, 1, 0}) layout.add(count, 3 * count, 40 + static_cast<std::uint64_t>(count));
  const auto size = static_cast<std::size_t>(layout.rows() * cols);
  gyre_test::shuffled_cuda device;
  const auto x = device.device().machine().allocate<double>(size, "x");
  std::vector<double> expected(size);
  for (const bool truncated : {false, true}) {
    const gyre::state_key key{gyre::seed{5}, 9};
    device.random_normal(gyre::matrix_view<double>(x.data(), layout.rows(), cols), layout, key, 0.7, truncated);
    gyre::reference().random_normal(gyre::matrix_view<double>(expected.data(), layout.rows(), cols), layout, key, 0.7,
                                    truncated);
    CHECK(std::equal(expected.begin(), expected.end(), x.begin()));
  }
}

TEST_CASE("normal numbers of kernels have the bits of the host's, far out too", "[cuda_kernels]") {
  // Bits of fractions 2^-52 k: from the least, geometrically, on both sides, and evenly.
  std::vector<std::uint64_t> places;
  for (double k = 0; k < 0x1p51; k = k * 1.01 + 1) places.push_back(static_cast<std::uint64_t>(k));
  for (std::uint64_t k = 0; k < 4000; ++k) places.push_back((std::uint64_t{1} << 51) / 4000 * k);
  for (const std::uint64_t place : places)
    for (const std::uint64_t bits : {place << 12, ~(place << 12)}) {
      double normal, truncated;
      gyre::detail::normal_from_bits<1>(&bits, 0.3, &normal);
      gyre::detail::truncated_normal_from_bits<1>(&bits, 0.3, &truncated);
      REQUIRE(gyre::detail::unfused_normal(bits, 0.3, false) == normal);
      REQUIRE(gyre::detail::unfused_normal(bits, 0.3, true) == truncated);
    }
}

TEST_CASE("initial states of cuda refuse a scale that is none", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  const gyre::batch_layout none;
  CHECK_THROWS_AS(device.random_normal(gyre::matrix_view<float>(), none, {}, -1.0, false), gyre::error);
}
