// What concerns the depths of a token, against the reference in long double.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>
#include <gyre/policy/depth_encoding.hpp>

#include "support.hpp"
#include "support/compare.hpp"

namespace gyre_test {
namespace {

using gyre::attention_shape, gyre::cpu, gyre::depth_encoding, gyre::pairing, gyre::reference, gyre::rotary_shape;
using exact = long double;

struct sizes {
  index tokens, slots, heads, kv_heads, width;
};
constexpr sizes cases[] = {{0, 3, 2, 1, 8},  {1, 1, 1, 1, 4},    {5, 0, 4, 2, 8},   {7, 2, 4, 1, 6},
                           {3, 6, 2, 2, 20}, {41, 16, 4, 1, 64}, {2, 70, 4, 4, 33}, {130, 9, 3, 1, 12}};

attention_shape shape_of(const sizes& s) { return {s.heads, s.kv_heads, s.width, 1 / std::sqrt(static_cast<double>(s.width))}; }

template <class T>
struct inputs {
  grid<T> q, k, v, d_o;
  inputs(const sizes& s)
      : q(random_grid<T>(s.tokens, s.heads * s.width, 1)),
        k(random_grid<T>(s.slots * s.tokens, s.kv_heads * s.width, 2)),
        v(random_grid<T>(s.slots * s.tokens, s.kv_heads * s.width, 3)),
        d_o(random_grid<T>(s.tokens, s.heads * s.width, 4)) {}
};

/// Largest magnitude of x.
template <class T>
exact largest(const grid<T>& x) {
  exact most = 0;
  for (index i = 0; i < x.read().rows; ++i)
    for (index j = 0; j < x.read().cols; ++j) most = std::max(most, std::fabs(static_cast<exact>(x[i][j])));
  return most;
}

/// A weight's relative error: its score has one of 2 width eps sum|q k|, and the same again is in the sum of all weights.
template <class T>
exact weight_error(const inputs<T>& x, const sizes& s) {
  const exact score = static_cast<exact>(s.width) * largest(x.q) * largest(x.k) / std::sqrt(static_cast<exact>(s.width));
  return 2 * (2 * static_cast<exact>(s.width) * score + static_cast<exact>(s.slots) + 16) * epsilon<T>;
}

}  // namespace

TEMPLATE_TEST_CASE("depth attention agrees with the reference", "[depth]", float, double) {
  using T = TestType;
  for (const sizes& s : cases) {
    CAPTURE(s.tokens, s.slots, s.heads, s.kv_heads, s.width);
    const inputs<T> x(s);
    cpu b(2);
    grid<T> o(s.tokens, s.heads * s.width), lse(s.tokens, s.heads, 0);
    b.depth_attention(x.q.read(), x.k.read(), x.v.read(), shape_of(s), o.view(), lse.data());
    grid<exact> o_want(s.tokens, s.heads * s.width), lse_want(s.tokens, s.heads, 0);
    const auto q = x.q.template as<exact>(), k = x.k.template as<exact>(), v = x.v.template as<exact>();
    reference().depth_attention(q.read(), k.read(), v.read(), shape_of(s), o_want.view(), lse_want.data());
    const exact relative = weight_error(x, s), value = largest(x.v);
    CHECK(differences(o.read(), o_want.view(), [&](index, index) { return relative * value; }) == "");
    CHECK(differences(lse.read(), lse_want.view(), [&](index, index) { return relative * 8; }) == "");
    CHECK(o.margins_intact());

    // Gradients, from the same o and lse on both sides.
    const auto d_o = x.d_o.template as<exact>(), o_exact = o.template as<exact>(), lse_exact = lse.template as<exact>();
    grid<T> dq(s.tokens, s.heads * s.width), dk = random_grid<T>(s.slots * s.tokens, s.kv_heads * s.width, 5),
                                             dv = random_grid<T>(s.slots * s.tokens, s.kv_heads * s.width, 6);
    grid<exact> dq_want(s.tokens, s.heads * s.width);
    auto dk_want = dk.template as<exact>(), dv_want = dv.template as<exact>();
    b.depth_attention_backward(x.q.read(), x.k.read(), x.v.read(), o.read(), static_cast<const T*>(lse.data()), x.d_o.read(),
                               shape_of(s), dq.view(), dk.view(), dv.view());
    reference().depth_attention_backward(q.read(), k.read(), v.read(), o_exact.read(),
                                         static_cast<const exact*>(lse_exact.data()), d_o.read(), shape_of(s), dq_want.view(),
                                         dk_want.view(), dv_want.view());
    // ds = p (dp - dot) scale: |dp|, |dot| <= width max|d_o| max|v|; summed over slots (dq) or the heads of a group (dk, dv).
    const exact dp = static_cast<exact>(s.width) * largest(x.d_o) * std::max(value, largest(o));
    const exact ds = 2 * dp / std::sqrt(static_cast<exact>(s.width)),
                ds_error = ds * (relative + 4 * static_cast<exact>(s.width) * epsilon<T>);
    const exact group = static_cast<exact>(s.heads / s.kv_heads), slots = static_cast<exact>(s.slots);
    CHECK(differences(dq.read(), dq_want.view(),
                      [&](index, index) { return slots * largest(x.k) * (ds_error + 2 * slots * epsilon<T> * ds); }) == "");
    CHECK(differences(dk.read(), dk_want.view(), [&](index, index) {
            return group * largest(x.q) * (ds_error + 2 * group * epsilon<T> * ds) + 2 * group * epsilon<T> * 5;
          }) == "");
    CHECK(differences(dv.read(), dv_want.view(), [&](index, index) {
            return group * largest(x.d_o) * (relative + 2 * group * epsilon<T>)+2 * group * epsilon<T> * 5;
          }) == "");
    CHECK((dq.margins_intact() && dk.margins_intact() && dv.margins_intact()));
  }
}

TEMPLATE_TEST_CASE("depth attention has the same bits for any number of threads and of rows", "[depth][threads]", float,
                   double) {
  using T = TestType;
  const sizes s{300, 7, 4, 2, 20};
  const inputs<T> x(s);
  const auto run = [&](int threads, index row, index count) {
    const auto rows_of = [&](const grid<T>& slots) {
      grid<T> part(s.slots * count, s.kv_heads * s.width);
      for (index j = 0; j < s.slots; ++j)
        for (index i = 0; i < count; ++i)
          for (index c = 0; c < s.kv_heads * s.width; ++c) part[j * count + i][c] = slots[j * s.tokens + row + i][c];
      return part;
    };
    const auto k = rows_of(x.k), v = rows_of(x.v);
    grid<T> o(count, s.heads * s.width), lse(count, s.heads, 0);
    cpu(threads).depth_attention(x.q.read().slice(row, count), k.read(), v.read(), shape_of(s), o.view(), lse.data());
    return o;
  };
  const auto whole = run(1, 0, s.tokens);
  CHECK(bit_differences(run(3, 0, s.tokens).view(), whole.view()) == "");
  for (const index row : {index{0}, index{17}, index{299}})
    CHECK(bit_differences(run(1, row, 1).view(), whole.view().slice(row, 1)) == "");
}

TEMPLATE_TEST_CASE("rotate agrees with the reference, there and back", "[depth]", float, double) {
  using T = TestType;
  for (const pairing pairs : {pairing::adjacent, pairing::half_split})
    for (const index tokens : {0, 1, 77}) {
      constexpr int width = 20;
      const rotary_shape shape{3, width, pairs};
      const auto angles = gyre::depth_angles<T, width>(depth_encoding::split, 100, 3, 8);
      const std::vector<exact> angles_exact(angles.begin(), angles.end());
      const auto x = random_grid<T>(tokens, 3 * width, 1);
      auto y = x;
      auto want = x.template as<exact>();
      cpu b(2);
      for (const bool back : {false, true}) {
        b.rotate(y.view(), angles.data(), shape, back);
        reference().rotate(want.view(), angles_exact.data(), shape, back);
        CHECK(differences(y.read(), want.view(), [&](index, index) { return 16 * 5 * epsilon<T>; }) == "");
      }
      CHECK(differences(y.read(), x.template as<exact>().view(), [&](index, index) { return 32 * 5 * epsilon<T>; }) == "");
      CHECK(y.margins_intact());
    }
}

}  // namespace gyre_test
