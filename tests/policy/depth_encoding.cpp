// RoSE: attention_mixtures, section 3.
#include <gyre/policy/depth_encoding.hpp>

#include <catch2/catch.hpp>
#include <cmath>

using gyre::depth_angles, gyre::depth_encoding;

TEST_CASE("the forward encoding turns pair i of P by base^(-i / P) l") {
  const auto a = depth_angles<double, 8>(depth_encoding::forward, 10000, 5, 16);
  for (int i = 0; i < 4; ++i) {
    const auto at = static_cast<std::size_t>(2 * i);
    CHECK(a[at] == Approx(std::cos(5 * std::pow(10000, -i / 4.0))));
    CHECK(a[at + 1] == Approx(std::sin(5 * std::pow(10000, -i / 4.0))));
  }
}

TEST_CASE("the split encoding's second half turns by the steps that remain") {
  const auto a = depth_angles<double, 8>(depth_encoding::split, 100, 5, 16);
  for (int i = 0; i < 4; ++i) {
    const double angle = std::pow(100, -(i % 2) / 2.0) * (i < 2 ? 5 : 16 - 1 - 5);
    CHECK(a[static_cast<std::size_t>(2 * i)] == Approx(std::cos(angle)));
    CHECK(a[static_cast<std::size_t>(2 * i + 1)] == Approx(std::sin(angle)));
  }
  // The last step has none left.
  const auto last = depth_angles<float, 4>(depth_encoding::split, 100, 15, 16);
  CHECK(last[2] == 1.0f);
  CHECK(last[3] == 0.0f);
}
