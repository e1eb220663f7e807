// Depth attention beyond what trials reach: more slots and features than a warp has lanes or a pass, bf16, scores that are not
// finite, memory that ends with the operands, offsets beyond 2^31. [own_unit]
#include "device_matrix.hpp"
#include "suite.hpp"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gyre/parity/bounded.hpp>

namespace {

using gyre::index, gyre::matrix_view, gyre::operation;
using gyre_test::device_matrix, gyre_test::shuffled_cuda, gyre_test::wide;

template <class T, operation Op>
void check_trial(std::vector<std::pair<std::string, index>> sizes) {
  gyre::reference left;
  shuffled_cuda right;
  CHECK_THAT((gyre::parity::run_trial<Op, T>(left, right, {Op, "", 5, std::move(sizes)})), gyre::parity::agrees());
}

template <class T>
void check_sizes(index rows, index slots, index kv_heads, index sharing, index width) {
  const std::vector<std::pair<std::string, index>> sizes{{"rows", rows},       {"slots", slots}, {"kv_heads", kv_heads},
                                                         {"sharing", sharing}, {"width", width}, {"gap", 1}};
  check_trial<T, operation::depth_attention>(sizes);
  check_trial<T, operation::depth_attention_backward>(sizes);
}

/// Both directions, in device memory of their own, beside the reference in bounded numbers.
template <class T>
void check_memory(index rows, index slots, gyre::attention_shape shape, index stride, index shift) {
  using S = gyre::detail::compute_t<T>;
  using exact = gyre::parity::bounded<S>;
  shuffled_cuda b;
  gyre::simt::machine& m = b.device().machine();
  const index many = shape.heads * shape.width, few = shape.kv_heads * shape.width;
  const device_matrix<T> q(m, rows, many, stride, shift, "q"), d_o(m, rows, many, stride, shift, "d_o"),
      k(m, slots * rows, few, stride, shift, "k"), v(m, slots * rows, few, stride, shift, "v"),
      o(m, rows, many, stride, shift, "o"), dq(m, rows, many, stride, shift, "dq"),
      dk(m, slots * rows, few, stride, shift, "dk"), dv(m, slots * rows, few, stride, shift, "dv");
  const device_matrix<S> lse(m, 1, rows * shape.heads, rows * shape.heads, 0, "lse");
  index salt = 0;
  for (const auto* x : {&q, &d_o, &k, &v, &dk, &dv}) x->fill(++salt);

  std::vector<std::vector<exact>> kept;
  kept.reserve(16);
  const auto copy = [&](const auto& x) {
    kept.emplace_back();
    for (index i = 0; i < x.view.rows; ++i)
      for (index j = 0; j < x.view.cols; ++j) kept.back().emplace_back(static_cast<long double>(wide(x.view[i][j])), 0.0L);
    return matrix_view<exact>(kept.back().data(), x.view.rows, x.view.cols);
  };
  const auto compare = [](const char* name, const auto& x, matrix_view<exact> expected, double rounding) {
    for (index i = 0; i < expected.rows; ++i)
      for (index j = 0; j < expected.cols; ++j) {
        const double value = wide(x.view[i][j]), right = static_cast<double>(expected[i][j].value()),
                     error = static_cast<double>(expected[i][j].error());
        if (!(std::abs(value - right) <= error + rounding * (std::abs(right) + error)))
          FAIL(name << " (" << i << ", " << j << ") is " << value << ", should be " << right << " within " << error);
      }
  };
  constexpr double rounding = gyre_test::rounding_of_result<T>;
  gyre::reference plain;
  const auto of = [](matrix_view<exact> x) { return matrix_view<const exact>(x); };
  const auto eq = copy(q), ek = copy(k), ev = copy(v), ed_o = copy(d_o), eo = copy(o), e_lse = copy(lse);

  b.depth_attention(q.read(), k.read(), v.read(), shape, o.view, lse.view.data);
  plain.depth_attention(of(eq), of(ek), of(ev), shape, eo, e_lse.data);
  compare("o", o, eo, rounding);
  compare("lse", lse, e_lse, 0);

  const auto given_o = copy(o), given_lse = copy(lse), edq = copy(dq), edk = copy(dk), edv = copy(dv);
  b.depth_attention_backward(q.read(), k.read(), v.read(), o.read(), static_cast<const S*>(lse.view.data), d_o.read(), shape,
                             dq.view, dk.view, dv.view);
  plain.depth_attention_backward(of(eq), of(ek), of(ev), of(given_o), static_cast<const exact*>(given_lse.data), of(ed_o),
                                 shape, edq, edk, edv);
  compare("dq", dq, edq, rounding);
  compare("dk", dk, edk, rounding);
  compare("dv", dv, edv, rounding);
}

template <class T>
void check_memory() {
  check_memory<T>(3, 5, {6, 2, 7, 0.4}, 43, 1);
  check_memory<T>(3, 70, {2, 1, 130, 0.1}, 264, 0);
  check_memory<T>(2, 2, {2, 1, 3, 0.5}, index{1} << 31, 0);
}

}  // namespace

TEMPLATE_TEST_CASE("depth attention of cuda crosses warps and passes", "[cuda_kernels]", float, double) {
  check_sizes<TestType>(3, 0, 1, 2, 5);  // no slot: zeros
  check_sizes<TestType>(2, 32, 1, 2, 5);
  check_sizes<TestType>(2, 33, 2, 1, 129);
  check_sizes<TestType>(1, 70, 1, 3, 40);
}

TEST_CASE("depth attention of cuda in float, in memory that ends with its operands", "[cuda_kernels]") {
  check_memory<float>();
}
TEST_CASE("depth attention of cuda in bf16", "[cuda_kernels]") { check_memory<gyre::bfloat16>(); }

TEST_CASE("depth attention of cuda leaves out slots whose score is -infinity", "[cuda_kernels]") {
  shuffled_cuda b;
  gyre::simt::machine& m = b.device().machine();
  const gyre::index slots = 40;
  const float infinity = std::numeric_limits<float>::infinity();
  const device_matrix<float> q(m, 1, 1, 1, 0, "q"), k(m, slots, 1, 1, 0, "k"), v(m, slots, 1, 1, 0, "v"), o(m, 1, 1, 1, 0, "o"),
      lse(m, 1, 1, 1, 0, "lse");
  q.view[0][0] = 1;
  const auto run = [&](gyre::index first, gyre::index end) {
    for (gyre::index j = 0; j < slots; ++j)
      k.view[j][0] = j >= first && j < end ? 0 : -infinity, v.view[j][0] = static_cast<float>(j);
    b.depth_attention(q.read(), k.read(), v.read(), {1, 1, 1, 1}, o.view, lse.view.data);
    return static_cast<double>(o.view[0][0]);
  };
  CHECK(run(36, 38) == 36.5);  // the first 32 all left out
  CHECK(run(2, 4) == 2.5);     // the last 8
  CHECK(lse.view[0][0] == Approx(std::log(2.0)));
  CHECK(std::isnan(run(0, 0)));
  k.view[39][0] = std::numeric_limits<float>::quiet_NaN();
  k.view[3][0] = 1;
  b.depth_attention(q.read(), k.read(), v.read(), {1, 1, 1, 1}, o.view, lse.view.data);
  CHECK(std::isnan(o.view[0][0]));
  k.view[39][0] = 0, k.view[3][0] = std::numeric_limits<float>::quiet_NaN();
  b.depth_attention(q.read(), k.read(), v.read(), {1, 1, 1, 1}, o.view, lse.view.data);
  CHECK(std::isnan(o.view[0][0]));
}
