// bf16 on the cpu backend: what parity trials do not reach. Blocks of rows, products that give float, conversions. [threads]
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include <gyre/backend/cpu.hpp>

namespace {

using gyre::bfloat16, gyre::matrix_view;

template <class T>
struct matrix {
  std::vector<T> values;
  gyre::index rows, cols;
  matrix(gyre::index r, gyre::index c, unsigned number = 0) : values(static_cast<std::size_t>(r * c)), rows(r), cols(c) {
    std::mt19937 random(number);
    std::normal_distribution<float> normal;
    for (T& x : values) x = T(number > 0 ? normal(random) : 0);
  }
  matrix_view<T> view() { return {values.data(), rows, cols}; }
  matrix_view<const T> read() const { return {values.data(), rows, cols}; }
};
matrix<float> widened(const matrix<bfloat16>& x) {
  matrix<float> y(x.rows, x.cols);
  for (std::size_t i = 0; i < x.values.size(); ++i) y.values[i] = x.values[i];
  return y;
}
template <class T>
bool same_bits(const matrix<T>& a, const matrix<T>& b) {
  return a.values.size() == b.values.size() && std::memcmp(a.values.data(), b.values.data(), sizeof(T) * a.values.size()) == 0;
}
template <class T>
gyre::weight_matrix<T, gyre::cpu::prepared<T>> weight(const matrix<T>& w) {
  return {w.read(), nullptr};
}

// More rows than are widened at a time.
constexpr gyre::index rows = 700, in = 160, out = 96;

}  // namespace

TEST_CASE("products in bf16 are those of the same numbers in float, rounded once", "[cpu][bf16][threads]") {
  const matrix<bfloat16> x(rows, in, 1), w(out, in, 2), dy(rows, out, 3);
  const matrix<float> wide_x = widened(x), wide_w = widened(w), wide_dy = widened(dy);
  for (const int threads : {1, 3}) {
    gyre::cpu device(threads);
    matrix<float> exact(rows, out), as_float(rows, out);
    device.product(wide_x.read(), weight(wide_w), exact.view(), false);
    device.product(x.read(), weight(w), as_float.view(), false);
    CHECK(same_bits(as_float, exact));
    device.product(x.read(), weight(w), as_float.view(), true);
    device.product(wide_x.read(), weight(wide_w), exact.view(), true);
    CHECK(same_bits(as_float, exact));

    matrix<bfloat16> y(rows, out, 4), rounded = y;
    matrix<float> sum = widened(y);
    device.product(wide_x.read(), weight(wide_w), sum.view(), true);
    device.copy(sum.read(), rounded.view());
    device.product(x.read(), weight(w), y.view(), true);
    CHECK(same_bits(y, rounded));

    matrix<float> dx(rows, in);
    matrix<bfloat16> rounded_dx(rows, in), mixed_dx(rows, in);
    device.product_input_gradient(wide_dy.read(), weight(wide_w), dx.view(), false);
    device.copy(dx.read(), rounded_dx.view());
    device.product_input_gradient(dy.read(), weight(w), mixed_dx.view(), false);
    CHECK(same_bits(mixed_dx, rounded_dx));
  }
}

TEST_CASE("a row of bf16 does not depend on the rows around it", "[cpu][bf16]") {
  gyre::cpu device(2);
  const matrix<bfloat16> x(rows, in, 1), w(out, in, 2), gain(1, in, 5);
  matrix<bfloat16> y(rows, out), normed(rows, in), silu(rows, in / 2);
  std::vector<float> rstd(rows);
  device.product(x.read(), weight(w), y.view(), false);
  device.rms_norm(x.read(), gain.values.data(), 1e-6, normed.view(), rstd.data());
  device.gated_silu(x.read(), silu.view());
  for (const gyre::index i : {gyre::index{0}, gyre::index{511}, gyre::index{512}, rows - 1}) {
    CAPTURE(i);
    matrix<bfloat16> one(1, out), one_normed(1, in), one_silu(1, in / 2);
    float factor = 0;
    device.product(x.read().slice(i, 1), weight(w), one.view(), false);
    device.rms_norm(x.read().slice(i, 1), gain.values.data(), 1e-6, one_normed.view(), &factor);
    device.gated_silu(x.read().slice(i, 1), one_silu.view());
    CHECK(std::memcmp(one.values.data(), y.view()[i], sizeof(bfloat16) * out) == 0);
    CHECK(std::memcmp(one_normed.values.data(), normed.view()[i], sizeof(bfloat16) * in) == 0);
    CHECK(std::memcmp(one_silu.values.data(), silu.view()[i], sizeof(bfloat16) * in / 2) == 0);
    CHECK(factor == rstd[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("sums over rows of bf16 go through blocks as those of float go through rows", "[cpu][bf16][threads]") {
  const matrix<bfloat16> x(rows, in, 1), dy(rows, in, 3), gain(1, in, 5);
  const matrix<float> wide_x = widened(x), wide_dy = widened(dy), wide_gain = widened(gain);
  gyre::cpu device(3);
  std::vector<float> rstd(rows, 0.5f), workspace(static_cast<std::size_t>(gyre::cpu::rms_norm_backward_workspace(rows, in)));
  matrix<float> sum(1, in), wide_sum(1, in), dgain(1, in), wide_dgain(1, in), wide_dx(rows, in);
  matrix<bfloat16> dx(rows, in), rounded(rows, in);
  device.column_sum(x.read(), sum.values.data(), workspace.data());
  device.column_sum(wide_x.read(), wide_sum.values.data(), workspace.data());
  CHECK(same_bits(sum, wide_sum));
  device.rms_norm_backward(x.read(), gain.values.data(), rstd.data(), dy.read(), dx.view(), dgain.values.data(),
                           workspace.data());
  device.rms_norm_backward(wide_x.read(), wide_gain.values.data(), rstd.data(), wide_dy.read(), wide_dx.view(),
                           wide_dgain.values.data(), workspace.data());
  device.copy(wide_dx.read(), rounded.view());
  CHECK(same_bits(dgain, wide_dgain));
  CHECK(same_bits(dx, rounded));
}

TEST_CASE("blocks of rows find what belongs to their rows", "[cpu][bf16][threads]") {
  constexpr gyre::index many = 1300;
  const matrix<bfloat16> x(many, in, 1), other(many, in, 2), gate(many, in / 2, 3);
  const matrix<float> wide_x = widened(x), wide_other = widened(other), wide_gate = widened(gate);
  std::vector<std::int32_t> numbers(many);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i * 7 % 50);
  gyre::cpu device(2);
  const auto rounded = [&](const matrix<float>& from) {
    matrix<bfloat16> to(from.rows, from.cols);
    device.copy(from.read(), to.view());
    return to;
  };
  {
    const matrix<float> angles(50, 32, 4);
    const gyre::rotary_shape shape{5, 32, gyre::pairing::half_split};
    const matrix<bfloat16> bias(1, in, 6);
    matrix<bfloat16> turned = x;
    matrix<float> wide = wide_x;
    device.rotary(turned.view(), bias.values.data(), numbers, angles.values.data(), shape);
    device.rotary(wide.view(), widened(bias).values.data(), numbers, angles.values.data(), shape);
    CHECK(same_bits(turned, rounded(wide)));
    device.rotate(turned.view(), angles.values.data(), shape, true);
    wide = widened(rounded(wide));
    device.rotate(wide.view(), angles.values.data(), shape, true);
    CHECK(same_bits(turned, rounded(wide)));
    device.standardise(turned.view());
    wide = widened(rounded(wide));
    device.standardise(wide.view());
    CHECK(same_bits(turned, rounded(wide)));
  }
  {
    matrix<bfloat16> logits = x;
    matrix<float> wide = wide_x, losses(1, many), wide_losses(1, many);
    device.cross_entropy(logits.view(), numbers, 0.5f, losses.values.data(), true);
    device.cross_entropy(wide.view(), numbers, 0.5f, wide_losses.values.data(), true);
    CHECK(same_bits(losses, wide_losses));
    CHECK(same_bits(logits, rounded(wide)));
  }
  {
    matrix<float> table(50, in), wide_table(50, in), change(many, 2), wide_change(many, 2);
    device.embed_backward(x.read(), numbers, 3.0, table.view());
    device.embed_backward(wide_x.read(), numbers, 3.0, wide_table.view());
    CHECK(same_bits(table, wide_table));
    device.row_change(x.read(), other.read(), change.values.data());
    device.row_change(wide_x.read(), wide_other.read(), wide_change.values.data());
    CHECK(same_bits(change, wide_change));
  }
  {
    const bfloat16 factor(0.75f);
    const float wide_factor = factor;
    matrix<bfloat16> dx(many, in);
    matrix<float> wide_dx(many, in), dfactor(1, 1), wide_dfactor(1, 1);
    std::vector<float> workspace(static_cast<std::size_t>(gyre::cpu::add_scaled_backward_workspace(many)));
    device.add_scaled_backward(x.read(), &factor, other.read(), dx.view(), dfactor.values.data(), workspace.data());
    device.add_scaled_backward(wide_x.read(), &wide_factor, wide_other.read(), wide_dx.view(), wide_dfactor.values.data(),
                               workspace.data());
    CHECK(same_bits(dfactor, wide_dfactor));
    CHECK(same_bits(dx, rounded(wide_dx)));
    matrix<bfloat16> dh(many, in);
    matrix<float> wide_dh(many, in);
    device.gated_silu_backward(x.read(), gate.read(), dh.view());
    device.gated_silu_backward(wide_x.read(), wide_gate.read(), wide_dh.view());
    CHECK(same_bits(dh, rounded(wide_dh)));
  }
}

TEST_CASE("conversions reach every element of strided matrices and nothing else", "[cpu][bf16]") {
  gyre::cpu device(2);
  for (const gyre::index gap : {0, 3}) {
    const gyre::index stride = 257 + gap;
    matrix<bfloat16> x(65, stride, 1), back(65, stride, 7);
    const matrix<bfloat16> before = back;
    matrix<float> wide(65, stride, 8);
    const matrix<float> wide_before = wide;
    device.copy(matrix_view<const bfloat16>(x.values.data(), 65, 257, stride),
                matrix_view<float>(wide.values.data(), 65, 257, stride));
    device.copy(matrix_view<const float>(wide.values.data(), 65, 257, stride),
                matrix_view<bfloat16>(back.values.data(), 65, 257, stride));
    for (gyre::index i = 0; i < 65; ++i)
      for (gyre::index j = 0; j < stride; ++j) {
        const bool inside = j < 257;
        REQUIRE(wide.view()[i][j] == (inside ? static_cast<float>(x.view()[i][j]) : wide_before.read()[i][j]));
        REQUIRE(back.view()[i][j].bits == (inside ? x : before).read()[i][j].bits);
      }
  }
}
