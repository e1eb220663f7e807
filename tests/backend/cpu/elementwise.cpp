// Every operation on rows against the reference in long double: float and double, strided, odd sizes.
#include <catch2/catch.hpp>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>

#include "support.hpp"
#include "support/compare.hpp"

namespace gyre_test {  // at global scope POSIX has an `index` of its own
namespace {

using gyre::cpu;
using gyre::reference;
using gyre::token;
using exact = long double;

constexpr index row_counts[] = {0, 1, 7, 129}, widths[] = {1, 2, 40, 64, 129};

std::vector<token> some_tokens(index count, token vocabulary) {
  std::vector<token> ids;
  for (index i = 0; i < count; ++i) ids.push_back(static_cast<token>((i * i + 3 * i) % vocabulary));
  return ids;
}

template <class F>
void for_shapes(F f) {
  for (const index rows : row_counts)
    for (const index cols : widths) {
      CAPTURE(rows, cols);
      f(rows, cols);
    }
}

TEMPLATE_TEST_CASE("fill, copy, add and gather move every element and nothing else", "", float, double) {
  using T = TestType;
  for (const index margin : {0, 3}) {  // without a margin rows are one piece
    for_shapes([&](index rows, index cols) {
      cpu b(2);
      const auto x = random_grid<T>(rows, cols, 1, 1, margin);
      grid<T> y(rows, cols, margin), want(rows, cols, margin);
      b.fill(y.view(), T(2.5));
      reference().fill(want.view(), T(2.5));
      CHECK(bit_differences(y.view(), want.view()) == "");
      b.add(x.read(), y.view());
      reference().add(x.read(), want.view());
      CHECK(bit_differences(y.view(), want.view()) == "");
      b.copy(x.read(), y.view());
      CHECK(bit_differences(y.view(), x.view()) == "");
      std::vector<index> from;
      for (index i = 0; i < rows; ++i) from.push_back((i * 5 + 2) % rows);
      b.gather(x.read(), from, y.view());
      reference().gather(x.read(), std::span<const index>(from), want.view());
      CHECK(bit_differences(y.view(), want.view()) == "");
      CHECK(y.margins_intact());
    });
  }
}

TEMPLATE_TEST_CASE("embed and its gradient", "", float, double) {
  using T = TestType;
  for_shapes([](index rows, index cols) {
    cpu b(2);
    const auto table = random_grid<T>(11, cols, 2);
    const auto ids = some_tokens(rows, 11);
    const double scale = 3.7;
    grid<T> y(rows, cols);
    grid<exact> want(rows, cols);
    b.embed(table.read(), ids, scale, y.view());
    reference().embed(table.template as<exact>().read(), std::span<const token>(ids), scale, want.view());
    CHECK(differences(y.read(), want.view(), [&](index i, index j) { return 2 * epsilon<T> * std::fabs(want[i][j]); }) == "");

    const auto dy = random_grid<T>(rows, cols, 3);
    auto d_table = random_grid<T>(11, cols, 4);
    auto d_want = d_table.template as<exact>();
    auto size = d_table.absolute().template as<exact>();
    reference().embed_backward(dy.template as<exact>().read(), std::span<const token>(ids), scale, d_want.view());
    reference().embed_backward(dy.absolute().template as<exact>().read(), std::span<const token>(ids), scale, size.view());
    b.embed_backward(dy.read(), ids, scale, d_table.view());
    const auto tolerance = [&](index i, index j) { return 2 * static_cast<exact>(rows + 1) * epsilon<T> * size[i][j]; };
    CHECK(differences(d_table.read(), d_want.view(), tolerance) == "");
    CHECK(y.margins_intact());
    CHECK(d_table.margins_intact());
  });
}

TEMPLATE_TEST_CASE("the gate and its gradient, over the whole range of the exponential", "", float, double) {
  using T = TestType;
  for (const double spread : {0.1, 3.0, 60.0})
    for_shapes([&](index rows, index cols) {
      cpu b(2);
      const auto h = random_grid<T>(rows, 2 * cols, 5, spread), da = random_grid<T>(rows, cols, 6);
      grid<T> a(rows, cols), dh(rows, 2 * cols);
      grid<exact> a_want(rows, cols), dh_want(rows, 2 * cols);
      b.gated_silu(h.read(), a.view());
      b.gated_silu_backward(h.read(), da.read(), dh.view());
      const auto h_exact = h.template as<exact>();
      reference().gated_silu(h_exact.read(), a_want.view());
      reference().gated_silu_backward(h_exact.read(), da.template as<exact>().read(), dh_want.view());
      // The largest intermediate of a is gate * up, of the gradients d * up * (1 + |gate|) and d * gate.
      const auto a_limit = [&](index i, index j) { return 8 * epsilon<T> * std::fabs(h_exact[i][j] * h_exact[i][cols + j]); };
      const auto dh_limit = [&](index i, index j) {
        const exact gate = std::fabs(h_exact[i][j % cols]), up = std::fabs(h_exact[i][j % cols + cols]),
                    d = std::fabs(da[i][j % cols]);
        return 8 * epsilon<T> * (j < cols ? d * up * (1 + gate) : d * gate);
      };
      CHECK(differences(a.read(), a_want.view(), a_limit) == "");
      CHECK(differences(dh.read(), dh_want.view(), dh_limit) == "");
      CHECK(a.margins_intact());
      CHECK(dh.margins_intact());
    });
}

TEMPLATE_TEST_CASE("column sums", "", float, double) {
  using T = TestType;
  for_shapes([](index rows, index cols) {
    cpu b(2);
    const auto x = random_grid<T>(rows, cols, 7);
    auto total = random_grid<T>(1, cols, 8);
    auto want = total.template as<exact>(), size = total.absolute().template as<exact>();
    reference().column_sum(x.template as<exact>().read(), want.data(), static_cast<exact*>(nullptr));
    reference().column_sum(x.absolute().template as<exact>().read(), size.data(), static_cast<exact*>(nullptr));
    grid<T> workspace(1, cpu::column_sum_workspace(rows, cols));
    b.column_sum(x.read(), total.data(), workspace.data());
    CHECK(differences(total.read(), want.view(),
                      [&](index i, index j) { return 2 * static_cast<exact>(rows + 1) * epsilon<T> * size[i][j]; }) == "");
    CHECK(total.margins_intact());
    CHECK(workspace.margins_intact());
  });
}

TEMPLATE_TEST_CASE("rotary encoding turns and turns back, in both pairings, with and without a bias", "", float, double) {
  using T = TestType;
  constexpr index positions = 50;
  for (const index width : {2, 8, 40, 64, 256})
    for (const index heads : {1, 5})
      for (const gyre::pairing pairs : {gyre::pairing::adjacent, gyre::pairing::half_split})
        for (const index rows : {0, 1, 7, 129}) {
          CAPTURE(width, heads, static_cast<int>(pairs), rows);
          cpu b(2);
          const gyre::rotary_shape shape{heads, width, pairs};
          grid<T> table(positions, width, 0);
          for (index p = 0; p < positions; ++p)
            for (index j = 0; j < width / 2; ++j) {
              const double angle =
                  static_cast<double>(p) * std::pow(50.0, -2.0 * static_cast<double>(j) / static_cast<double>(width));
              table[p][2 * j] = static_cast<T>(std::cos(angle)), table[p][2 * j + 1] = static_cast<T>(std::sin(angle));
            }
          const auto table_exact = table.template as<exact>();
          std::vector<std::int32_t> at;
          for (index i = 0; i < rows; ++i) at.push_back(static_cast<std::int32_t>((7 * i + 3) % positions));
          const auto bias = random_grid<T>(1, heads * width, 9);
          const auto bias_exact = bias.template as<exact>();
          for (const bool with_bias : {false, true}) {
            auto x = random_grid<T>(rows, heads * width, 10), dx = x;
            auto want = x.template as<exact>(), d_want = want;
            b.rotary(x.view(), with_bias ? bias.data() : nullptr, at, table.data(), shape);
            reference().rotary(want.view(), with_bias ? bias_exact.data() : nullptr, std::span<const std::int32_t>(at),
                               table_exact.data(), shape);
            b.rotary_backward(dx.view(), at, table.data(), shape);
            reference().rotary_backward(d_want.view(), std::span<const std::int32_t>(at), table_exact.data(), shape);
            const exact largest = 12;  // of the two features and their biases together; normal numbers end before 6
            CHECK(differences(x.read(), want.view(), 8 * epsilon<T> * largest) == "");
            CHECK(differences(dx.read(), d_want.view(), 8 * epsilon<T> * largest) == "");
            CHECK(x.margins_intact());
            CHECK(dx.margins_intact());
          }
        }
}

TEMPLATE_TEST_CASE("random states are the stream's numbers, whatever the batch", "", float, double) {
  using T = TestType;
  cpu b(2);
  gyre::batch_layout layout;
  layout.add(0, 3, 9), layout.add(129, 0, 5), layout.add(1, 17, 6), layout.add(7, 2, 5);
  for (const bool truncated : {false, true})
    for (const index cols : {1, 40, 129}) {
      CAPTURE(truncated, cols);
      const gyre::state_key key{gyre::seed{77}, 12};
      grid<T> y(layout.rows(), cols), want(layout.rows(), cols);
      b.random_normal(y.view(), layout, key, 0.6, truncated);
      reference().random_normal(want.view(), layout, key, 0.6, truncated);
      CHECK(bit_differences(y.view(), want.view()) == "");
      CHECK(y.margins_intact());
    }
}

}  // namespace
}  // namespace gyre_test
