// Element types: names as the official package has them, and narrow floats converted exactly.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include <gyre/io/dtype.hpp>

using gyre::dtype;

TEST_CASE("dtype: names lead to types and back, and C++ numbers have theirs", "[dtype]") {
  for (std::size_t i = 0; i < 22; ++i) {
    const auto type = static_cast<dtype>(i);
    CHECK(gyre::dtype_named(gyre::name_of(type)) == type);
  }
  CHECK_FALSE(gyre::dtype_named("F33").has_value());
  CHECK_FALSE(gyre::dtype_named("f32").has_value());
  CHECK_FALSE(gyre::dtype_named("").has_value());
  CHECK(gyre::name_of(dtype::boolean) == "BOOL");
  CHECK(gyre::name_of(dtype::f8_e5m2fnuz) == "F8_E5M2FNUZ");
  CHECK(gyre::name_of(dtype::c64) == "C64");
  CHECK(gyre::bits_of(dtype::f4) == 4);
  CHECK(gyre::bits_of(dtype::f6_e3m2) == 6);
  CHECK(gyre::bits_of(dtype::boolean) == 8);
  CHECK(gyre::bits_of(dtype::bf16) == 16);
  CHECK(gyre::bits_of(dtype::c64) == 64);
  STATIC_REQUIRE(gyre::dtype_of<float>() == dtype::f32);
  STATIC_REQUIRE(gyre::dtype_of<double>() == dtype::f64);
  STATIC_REQUIRE(gyre::dtype_of<std::uint8_t>() == dtype::u8);
  STATIC_REQUIRE(gyre::dtype_of<std::int8_t>() == dtype::i8);
  STATIC_REQUIRE(gyre::dtype_of<std::uint16_t>() == dtype::u16);
  STATIC_REQUIRE(gyre::dtype_of<std::int32_t>() == dtype::i32);
  STATIC_REQUIRE(gyre::dtype_of<std::int64_t>() == dtype::i64);
  STATIC_REQUIRE(gyre::dtype_of<unsigned long long>() == dtype::u64);
}

TEST_CASE("dtype: all 65,536 F16 and BF16 values are converted exactly", "[dtype]") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    const int sign = (bits >> 15) != 0 ? -1 : 1;
    const auto same = [&](float got, int exponent_bits, int mantissa_bits) {
      const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
      const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
      const int bias = (1 << (exponent_bits - 1)) - 1;
      if (exponent == (1 << exponent_bits) - 1 && mantissa != 0) return std::isnan(got) && std::signbit(got) == (sign < 0);
      const double wanted = exponent == (1 << exponent_bits) - 1 ? sign * HUGE_VAL
                            : exponent == 0
                                ? sign * std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                : sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
      return static_cast<double>(got) == wanted && std::signbit(got) == (sign < 0);
    };
    if (!same(gyre::float_from_f16(narrow), 5, 10)) FAIL("F16 " << bits);
    if (!same(gyre::float_from_bf16(narrow), 8, 7)) FAIL("BF16 " << bits);
  }
  CHECK(gyre::float_from_f16(0x3C00) == 1.0f);
  CHECK(gyre::float_from_f16(0x7BFF) == 65504.0f);
  CHECK(gyre::float_from_f16(0x0001) == 0x1p-24f);
  CHECK(gyre::float_from_bf16(0x4049) == 3.140625f);
}
