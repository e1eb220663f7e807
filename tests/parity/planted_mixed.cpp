// Faults that bf16 invites: sums, statistics and gradients of parameters that are not kept in fp32.
#include <gyre/parity/catch.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "planted.hpp"

namespace gyre_test {

using gyre::bfloat16;

namespace {

template <operation Op, class Kernel>
parity::outcome examine_mixed(Kernel kernel, index trials = 24) {
  reference left;
  auto right = parity::replace<Op>(reference(), kernel);
  return parity::run_check(parity::check_of<Op, bfloat16>(left, right), {.trials = trials});
}
bool off(const parity::outcome& o) { return !o.passed() && shows(o.failure, fault::tolerance); }

constexpr auto kept = [](float x) { return x; };
constexpr auto rounded = [](float x) { return static_cast<float>(bfloat16(x)); };

/// Attention whose scores, weights where they multiply, and sums of values go through these functions.
template <class Scores, class Weights, class Sums>
parity::outcome examine_attention(Scores of_scores, Weights of_weights, Sums of_sums) {
  using matrix = matrix_view<const bfloat16>;
  return examine_mixed<operation::attention>(
      [=](matrix q, matrix k, matrix v, const gyre::batch_layout& layout, gyre::attention_shape shape, matrix_view<bfloat16> o,
          float* lse) {
        for (const gyre::sequence_span& s : layout.sequences())
          for (index i = s.begin; i < s.begin + s.count; ++i)
            for (index h = 0; h < shape.heads; ++h) {
              const index from = h * shape.width, shared = h / (shape.heads / shape.kv_heads) * shape.width;
              std::vector<float> read(static_cast<std::size_t>(shape.width));
              float total = 0;
              for (index j = s.begin; j <= i; ++j) {
                float score = 0;
                for (index c = 0; c < shape.width; ++c) score += q[i][from + c] * k[j][shared + c];
                const float weight = std::exp(of_scores(score * static_cast<float>(shape.scale)));
                total += weight;
                for (index c = 0; c < shape.width; ++c) {
                  float& sum = read[static_cast<std::size_t>(c)];
                  sum = of_sums(sum + of_weights(weight) * v[j][shared + c]);
                }
              }
              for (index c = 0; c < shape.width; ++c) o[i][from + c] = bfloat16(read[static_cast<std::size_t>(c)] / total);
              lse[i * shape.heads + h] = std::log(total);
            }
      },
      60);  // sums in bf16 err by little more than rounded weights: a trial in thirty shows it
}

/// Its gradients: weights and score gradients where they multiply, and sums, go through these functions.
template <class Weights, class Scores, class Sums>
parity::outcome examine_attention_backward(Weights of_weights, Scores of_score_gradients, Sums of_sums) {
  using matrix = matrix_view<const bfloat16>;
  return examine_mixed<operation::attention_backward>(
      [=](matrix q, matrix k, matrix v, matrix o, const float* lse, matrix d_o, const gyre::batch_layout& layout,
          gyre::attention_shape shape, matrix_view<bfloat16> dq, matrix_view<bfloat16> dk, matrix_view<bfloat16> dv, float*) {
        const auto zeros = [](matrix_view<bfloat16> x) { return std::vector<float>(static_cast<std::size_t>(x.size())); };
        std::vector<float> to_q = zeros(dq), to_k = zeros(dk), to_v = zeros(dv);
        const auto add = [&](std::vector<float>& sums, index at, float x) {
          float& sum = sums[static_cast<std::size_t>(at)];
          sum = of_sums(sum + x);
        };
        const auto scale = static_cast<float>(shape.scale);
        for (const gyre::sequence_span& s : layout.sequences())
          for (index h = 0; h < shape.heads; ++h)
            for (index i = s.begin; i < s.begin + s.count; ++i)
              for (index j = s.begin; j <= i; ++j) {
                const index from = h * shape.width, shared = h / (shape.heads / shape.kv_heads) * shape.width;
                float score = 0, dp = 0;
                for (index c = 0; c < shape.width; ++c) {
                  score += q[i][from + c] * k[j][shared + c];
                  dp += d_o[i][from + c] * (v[j][shared + c] - o[i][from + c]);
                }
                const float p = std::exp(score * scale - lse[i * shape.heads + h]), weight = of_weights(p),
                            ds = of_score_gradients(p * dp * scale);
                for (index c = 0; c < shape.width; ++c) {
                  add(to_q, i * dq.cols + from + c, ds * k[j][shared + c]);
                  add(to_k, j * dk.cols + shared + c, ds * q[i][from + c]);
                  add(to_v, j * dv.cols + shared + c, weight * d_o[i][from + c]);
                }
              }
        const auto store = [](const std::vector<float>& sums, matrix_view<bfloat16> y) {
          for (index i = 0; i < y.rows; ++i)
            for (index j = 0; j < y.cols; ++j) y[i][j] = bfloat16(sums[static_cast<std::size_t>(i * y.cols + j)]);
        };
        store(to_q, dq), store(to_k, dk), store(to_v, dv);
      });
}

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

TEST_CASE("weights of attention may be rounded to bf16; scores and sums may not", "[parity][bf16]") {
  CHECK(examine_attention(kept, kept, kept).passed());
  CHECK(examine_attention(kept, rounded, kept).passed());
  CHECK(off(examine_attention(rounded, kept, kept)));
  CHECK(off(examine_attention(kept, kept, rounded)));
}

TEST_CASE("weights and score gradients may be rounded to bf16 in attention's gradients; sums may not", "[parity][bf16]") {
  const auto wide = [](float x) { return 1.02f * x; };  // off by five roundings
  CHECK(examine_attention_backward(kept, kept, kept).passed());
  CHECK(examine_attention_backward(rounded, rounded, kept).passed());
  CHECK(off(examine_attention_backward(kept, kept, rounded)));
  CHECK(off(examine_attention_backward(wide, kept, kept)));
  CHECK(off(examine_attention_backward(kept, wide, kept)));
}

}  // namespace gyre_test
