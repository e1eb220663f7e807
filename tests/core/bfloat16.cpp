// bf16 against the definition of rounding, and against the type that kernels have.
#include <gyre/core/bfloat16.hpp>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gyre/io/dtype.hpp>
#include <gyre/simt/bfloat16.hpp>

using gyre::bfloat16;

namespace {

/// By definition: the neighbour that is nearer, of two alike the one whose last bit is 0.
std::uint16_t rounded(double x) {
  if (x != x) return 0x7fff;
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double size = std::fabs(x);
  std::uint16_t low = 0, high = 0x7f80;
  const auto value = [](std::uint16_t bits) {
    return bits == 0x7f80 ? std::ldexp(1.0, 128) : static_cast<double>(static_cast<float>(bfloat16::of_bits(bits)));
  };
  while (low + 1 < high) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (value(middle) <= size ? low : high) = middle;
  }
  const double below = size - value(low), above = value(high) - size;
  const bool up = std::isinf(size) || above < below || (!(below < above) && low % 2 == 1);
  return static_cast<std::uint16_t>(sign | (up ? high : low));
}

}  // namespace

TEST_CASE("bf16 numbers become floats and come back", "[bfloat16]") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto x = bfloat16::of_bits(static_cast<std::uint16_t>(bits));
    const float f = x;
    const __nv_bfloat16 kernels = __ushort_as_bfloat16(x.bits);
    const float expected = __bfloat162float(kernels);
    REQUIRE(std::memcmp(&f, &expected, sizeof f) == 0);
    REQUIRE(bfloat16(f).bits == (f == f ? x.bits : 0x7fff));
  }
}

TEST_CASE("bf16 is rounded once, from every type", "[bfloat16]") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200000; ++i) {
    // Bits that are near a tie more often than chance would have it.
    const auto drawn = static_cast<std::uint32_t>(random());
    const std::uint32_t bits = i % 3 == 0 ? (drawn & 0xffff0000u) | 0x8000u : i % 3 == 1 ? drawn & 0xffff8001u : drawn;
    const float f = std::bit_cast<float>(bits);
    REQUIRE(bfloat16(f).bits == rounded(static_cast<double>(f)));
    REQUIRE(bfloat16(f).bits == __bfloat16_as_ushort(__float2bfloat16_rn(f)));
    if (!std::isfinite(f)) continue;
    for (const double off : {0.0, 1e-12, -1e-12}) {
      const double d = static_cast<double>(f) * (1 + off);
      REQUIRE(bfloat16(d).bits == rounded(d));
      REQUIRE(bfloat16(static_cast<long double>(d)).bits == rounded(d));
    }
  }
  CHECK(bfloat16(257).bits == bfloat16(256.0f).bits);  // a tie
  CHECK(static_cast<float>(bfloat16(259)) == 260);     // a tie
  CHECK(bfloat16(1e60).bits == 0x7f80);
  CHECK(bfloat16(-1e-60).bits == 0x8000);
  CHECK(bfloat16(1e-60).bits == 0);
}

TEST_CASE("bf16 knows its limits", "[bfloat16]") {
  using limits = std::numeric_limits<bfloat16>;
  CHECK(static_cast<float>(limits::epsilon()) == 0x1p-7f);
  CHECK(static_cast<float>(limits::max()) == 0x1.fep127f);
  CHECK(static_cast<float>(limits::min()) == 0x1p-126f);
  CHECK(static_cast<float>(limits::denorm_min()) == 0x1p-133f);
  CHECK(std::isinf(static_cast<float>(limits::infinity())));
  CHECK(std::isnan(static_cast<float>(limits::quiet_NaN())));
  CHECK(gyre::dtype_of<bfloat16>() == gyre::dtype::bf16);
}
