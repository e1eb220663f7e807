// Faults that bf16 invites: sums, statistics and gradients of parameters that are not kept in fp32.
#include <gyre/parity/catch.hpp>

#include <bit>
#include <cstdint>

#include "planted.hpp"

namespace gyre_test {

using gyre::bfloat16;

namespace {

template <operation Op, class Kernel>
parity::outcome examine_mixed(Kernel kernel) {
  reference left;
  auto right = parity::replace<Op>(reference(), kernel);
  return parity::run_check(parity::check_of<Op, bfloat16>(left, right), {.trials = 24});
}
bool off(const parity::outcome& o) { return !o.passed() && shows(o.failure, fault::tolerance); }

}  // namespace

TEST_CASE("a product that sums in bf16 is found", "[parity][bf16]") {
  const auto product = [](auto sum) {
    return [sum](matrix_view<const bfloat16> x, auto w, matrix_view<bfloat16> y, bool accumulate) {
      for (index i = 0; i < y.rows; ++i)
        for (index o = 0; o < y.cols; ++o) {
          auto dot = sum;
          for (index k = 0; k < x.cols; ++k) dot = decltype(dot)(dot + x[i][k] * w.raw[o][k]);
          y[i][o] = bfloat16(accumulate ? y[i][o] + dot : dot + 0.0f);
        }
    };
  };
  CHECK(off(examine_mixed<operation::product>(product(bfloat16(0)))));
  CHECK(examine_mixed<operation::product>(product(0.0f)).passed());
}

TEST_CASE("gradients of parameters that were rounded to bf16 on their way are found", "[parity][bf16]") {
  CHECK(off(examine_mixed<operation::product_weight_gradient>(
      [](matrix_view<const bfloat16> dy, matrix_view<const bfloat16> x, matrix_view<float> dw) {
        for (index o = 0; o < dw.rows; ++o)
          for (index k = 0; k < dw.cols; ++k) {
            float sum = 0;
            for (index i = 0; i < x.rows; ++i) sum += dy[i][o] * x[i][k];
            dw[o][k] += bfloat16(sum);
          }
      })));
  CHECK(off(examine_mixed<operation::column_sum>([](matrix_view<const bfloat16> x, float* sum, float*) {
    for (index i = 0; i < x.rows; ++i)
      for (index j = 0; j < x.cols; ++j) sum[j] = bfloat16(sum[j] + x[i][j]);
  })));
}

TEST_CASE("a loss and a norm's factor in bf16 are found, as is rounding towards zero", "[parity][bf16]") {
  CHECK(off(examine_mixed<operation::rms_norm>(
      [](reference& device, auto x, const bfloat16* gain, double eps, matrix_view<bfloat16> y, float* rstd) {
        device.rms_norm(x, gain, eps, y, rstd);
        for (index i = 0; i < x.rows; ++i) rstd[i] = bfloat16(rstd[i]);
      })));
  CHECK(off(examine_mixed<operation::cross_entropy>(
      [](reference& device, auto logits, auto targets, float scale, float* losses, bool gradient) {
        device.cross_entropy(logits, targets, scale, losses, gradient);
        for (index i = 0; i < logits.rows; ++i) losses[i] = bfloat16(losses[i]);
      })));
  CHECK(off(examine_mixed<operation::copy>([](matrix_view<const float> x, matrix_view<bfloat16> y) {
    for (index i = 0; i < x.rows; ++i)
      for (index j = 0; j < x.cols; ++j)
        y[i][j] = bfloat16::of_bits(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x[i][j]) >> 16));
  })));
}

}  // namespace gyre_test
