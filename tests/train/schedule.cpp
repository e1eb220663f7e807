// Learning-rate schedules: exact at their corners, monotone between them.
#include <catch2/catch.hpp>

#include <gyre/train/schedule.hpp>

#include <cmath>
#include <limits>

using gyre::warmup_constant_cooldown;
using gyre::warmup_cosine;

static_assert(gyre::learning_rate_schedule<gyre::constant_rate>);
static_assert(gyre::learning_rate_schedule<warmup_constant_cooldown>);
static_assert(gyre::learning_rate_schedule<warmup_cosine>);
static_assert(!gyre::learning_rate_schedule<double>);

TEST_CASE("the constant rate is 1", "[schedule]") {
  CHECK(gyre::constant_rate{}(1, 10) == 1);
  CHECK(gyre::constant_rate{}(10, 10) == 1);
}

TEST_CASE("warm-up, constant, cool-down: the corners are exact", "[schedule]") {
  const warmup_constant_cooldown rate{.warm_up = 100, .cooldown_start = 0.75, .floor = 0.0625};
  CHECK(rate(1, 2000) == 0.01);
  CHECK(rate(50, 2000) == 0.5);
  CHECK(rate(99, 2000) == 0.99);
  CHECK(rate(100, 2000) == 1);
  CHECK(rate(101, 2000) == 1);
  CHECK(rate(1500, 2000) == 1);
  CHECK(rate(1501, 2000) == Approx(1 - 0.9375 / 500).epsilon(1e-15));
  CHECK(rate(1750, 2000) == 1 - 0.9375 / 2);
  CHECK(rate(2000, 2000) == 0.0625);
  CHECK(rate(2001, 2000) == 0.0625);
  CHECK(warmup_constant_cooldown{.warm_up = 100, .cooldown_start = 0.7, .floor = 0.05}(2000, 2000) == 0.05);
  double last = 1;
  for (std::uint64_t step = 100; step <= 2000; ++step) {
    const double now = rate(step, 2000);
    REQUIRE((now <= last && now >= 0.0625));
    last = now;
  }
  // No warm-up, no cool-down, nothing but cool-down, overlap.
  CHECK(warmup_constant_cooldown{.warm_up = 0, .cooldown_start = 1}(1, 10) == 1);
  CHECK(warmup_constant_cooldown{.warm_up = 0, .cooldown_start = 1}(10, 10) == 1);
  CHECK(warmup_constant_cooldown{.warm_up = 1, .cooldown_start = 0}(5, 10) == 0.5);
  CHECK(warmup_constant_cooldown{.warm_up = 1, .cooldown_start = 0}(10, 10) == 0);
  CHECK(warmup_constant_cooldown{.warm_up = 10, .cooldown_start = 0}(4, 10) == 0.4);
  CHECK(warmup_constant_cooldown{.warm_up = 10, .cooldown_start = 0}(8, 10) == Approx(0.2).epsilon(1e-15));
  CHECK(warmup_constant_cooldown{.warm_up = 100, .cooldown_start = 1}(10, 10) == 0.1);
  CHECK(warmup_constant_cooldown{.warm_up = 100, .cooldown_start = 1}(50, 10) == 0.1);
}

TEST_CASE("warm-up and cosine: the corners are exact", "[schedule]") {
  const warmup_cosine rate{.warm_up = 10, .floor = 0.25};
  CHECK(rate(1, 110) == 0.1);
  CHECK(rate(10, 110) == 1);
  CHECK(rate(60, 110) == Approx(0.625).epsilon(1e-15));
  CHECK(rate(110, 110) == 0.25);
  CHECK(rate(200, 110) == 0.25);
  for (std::uint64_t step = 11; step <= 110; ++step) {
    const double x = static_cast<double>(step - 10) / 100;
    // Both forms have a few roundings of numbers up to 1.
    REQUIRE(std::fabs(rate(step, 110) - (0.25 + 0.75 * (1 + std::cos(std::acos(-1.0) * x)) / 2)) < 1e-15);
    REQUIRE(rate(step, 110) < rate(step - 1, 110));
  }
  CHECK(warmup_cosine{}(10, 10) == 0);
  CHECK(warmup_cosine{.warm_up = 20}(5, 10) == 0.25);
  CHECK(warmup_cosine{.warm_up = 20}(10, 10) == 0.5);
  CHECK(warmup_cosine{.warm_up = 20}(30, 10) == 0.5);
}

TEST_CASE("fields and steps that make no schedule are refused with their numbers", "[schedule]") {
  using Catch::Contains;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH((warmup_constant_cooldown{.cooldown_start = 1.5}(1, 10)), Contains("cooldown_start is 1.5"));
  CHECK_THROWS_WITH((warmup_constant_cooldown{.floor = -0.5}(1, 10)), Contains("floor is -0.5"));
  CHECK_THROWS_AS((warmup_constant_cooldown{.floor = nan}(1, 10)), gyre::error);
  CHECK_THROWS_WITH((warmup_cosine{.floor = 2}(1, 10)), Contains("floor is 2"));
  CHECK_THROWS_WITH((warmup_cosine{}(0, 10)), Contains("step 0 of 10"));
  CHECK_THROWS_AS((warmup_constant_cooldown{}(1, 0)), gyre::error);
  CHECK_THROWS_AS((gyre::constant_rate{}(0, 5)), gyre::error);
}
