// Grouped products beyond what trials reach: bf16, matrices that lie as aligned copies need them, memory that ends where the
// operands do, rows among others, offsets beyond 2^31. [own_unit]
#include "device_matrix.hpp"
#include "suite.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace {

using gyre::index, gyre::matrix_view;
using gyre_test::device_matrix, gyre_test::number, gyre_test::shuffled_cuda, gyre_test::wide;

struct sizes {
  std::vector<std::int32_t> offsets;
  index in, out;
  index stride_in, stride_out, group_stride;  // of rows of x and w, of rows of y, from matrix to matrix
  index shift;                                // of every matrix, in scalars
};

/// x (rows, in), y (rows, out), a matrix (out, in) for every group from the first with rows to the last; `w` is where group 0's
/// would lie.
template <class T, class G>
class grouped {
 public:
  explicit grouped(const sizes& s)
      : s_(s),
        offsets_(device().template allocate<std::int32_t>(s.offsets.size(), "offsets")),
        x(device(), rows(), s.in, s.stride_in, s.shift, "x"),
        y(device(), rows(), s.out, s.stride_out, s.shift, "y"),
        w(device().template allocate<T>(matrices(), "w")),
        dw(device().template allocate<G>(matrices(), "dw")) {
    std::copy(s.offsets.begin(), s.offsets.end(), offsets_.begin());
  }

  void check() {
    for (const bool accumulate : {false, true}) {
      INFO((accumulate ? "accumulates" : "assigns"));
      start();
      b_.grouped_product(x.read(), weights(), groups(), y.view, accumulate);
      for_each_row([&](index i, index g) {
        for (index o = 0; o < s_.out; ++o)
          compare<T>(wide(y.view[i][o]), s_.in, accumulate ? wide(number<T>(i + 2000, o)) : 0,
                     [&](index k) { return wide(x.view[i][k]) * wide(at(w, g)[o][k]); });
      });
      start();
      b_.grouped_product_input_gradient(y.read(), weights(), groups(), x.view, accumulate);
      for_each_row([&](index i, index g) {
        for (index k = 0; k < s_.in; ++k)
          compare<T>(wide(x.view[i][k]), s_.out, accumulate ? wide(number<T>(i + 1000, k)) : 0,
                     [&](index o) { return wide(y.view[i][o]) * wide(at(w, g)[o][k]); });
      });
    }
    start();
    b_.grouped_product_weight_gradient(y.read(), x.read(), groups(), first_of(dw));
    for (index g = first(); g <= last(); ++g) {
      const index begin = s_.offsets[static_cast<std::size_t>(g)], end = s_.offsets[static_cast<std::size_t>(g) + 1];
      for (index o = 0; o < s_.out; ++o)
        for (index k = 0; k < s_.in; ++k)
          if (begin == end && !std::signbit(wide(at(dw, g)[o][k])))
            FAIL("wrote to the matrix of group " << g << ", which has no rows");
          else if (begin < end)
            compare<G>(wide(at(dw, g)[o][k]), end - begin, wide(number<G>(o + 3 + g, k)),
                       [&](index i) { return wide(y.view[begin + i][o]) * wide(x.view[begin + i][k]); });
    }
  }

  /// Whether row `i` alone gives the bits that it has among all.
  void check_alone(index i) {
    start();
    b_.grouped_product(x.read(), weights(), groups(), y.view, false);
    std::vector<T> among(y.view[i], y.view[i] + s_.out);
    index g = 0;
    while (s_.offsets[static_cast<std::size_t>(g) + 1] <= i) ++g;
    std::vector<std::int32_t> all(offsets_.begin(), offsets_.end());
    for (std::size_t n = 0; n < all.size(); ++n) offsets_[n] = static_cast<index>(n) > g;
    b_.grouped_product(x.read().slice(i, 1), weights(), groups(), y.view.slice(0, 1), false);
    std::copy(all.begin(), all.end(), offsets_.begin());
    REQUIRE(std::memcmp(among.data(), y.view[0], sizeof(T) * among.size()) == 0);
  }

 private:
  using nothing = gyre::detail::nothing_prepared<T>;
  gyre::simt::machine& device() { return b_.device().machine(); }
  index rows() const { return s_.offsets.back(); }
  index count() const { return static_cast<index>(s_.offsets.size()) - 1; }
  index first() const {
    index g = 0;
    while (s_.offsets[static_cast<std::size_t>(g) + 1] == 0) ++g;
    return g;
  }
  index last() const {
    index g = count() - 1;
    while (s_.offsets[static_cast<std::size_t>(g)] == rows()) --g;
    return g;
  }
  std::size_t matrices() const {
    return static_cast<std::size_t>(s_.shift + (last() - first()) * s_.group_stride + (s_.out - 1) * s_.stride_in + s_.in);
  }
  template <class X>
  matrix_view<X> at(const gyre::simt::device_array<X>& m, index g) const {
    return {m.data() + s_.shift + (g - first()) * s_.group_stride, s_.out, s_.in, s_.stride_in};
  }
  template <class X>
  matrix_view<X> first_of(const gyre::simt::device_array<X>& m) const {
    return at(m, 0);
  }
  gyre::weight_matrix<T, nothing> weights() const { return {first_of(w), nullptr}; }
  gyre::row_groups groups() const { return {offsets_.data(), count(), s_.group_stride}; }

  void start() {
    x.fill(1), y.fill(2);
    for (index g = first(); g <= last(); ++g)
      for (index o = 0; o < s_.out; ++o)
        for (index k = 0; k < s_.in; ++k) {
          if (s_.offsets[static_cast<std::size_t>(g)] == s_.offsets[static_cast<std::size_t>(g) + 1]) {
            at(dw, g)[o][k] = gyre::detail::narrow<G>(-0.0f);  // to which nothing can be added unseen
            continue;
          }
          at(w, g)[o][k] = number<T>(o + 100 * g, k + 7);
          at(dw, g)[o][k] = number<G>(o + 3 + g, k);
        }
  }
  template <class F>
  void for_each_row(F f) const {
    for (index g = 0; g < count(); ++g)
      for (index i = s_.offsets[static_cast<std::size_t>(g)]; i < s_.offsets[static_cast<std::size_t>(g) + 1]; ++i) f(i, g);
  }

  /// The contract's tolerance of sums; rounding to bf16 besides.
  template <class Result, class Term>
  static void compare(double value, index n, double old, Term term) {
    constexpr double epsilon = std::numeric_limits<gyre::detail::compute_t<T>>::epsilon();
    double sum = old, size = std::abs(old);
    for (index k = 0; k < n; ++k) sum += term(k), size += std::abs(term(k));
    const double tolerance = 2 * static_cast<double>(n + 1) * epsilon * size;
    if (!(std::abs(value - sum) <= tolerance + gyre_test::rounding_of_result<Result> * (std::abs(sum) + tolerance)))
      FAIL("got " << value << " for " << sum << ", of " << n << " terms");
  }

  sizes s_;
  shuffled_cuda b_;
  gyre::simt::device_array<std::int32_t> offsets_;

 public:
  device_matrix<T> x, y;
  gyre::simt::device_array<T> w;
  gyre::simt::device_array<G> dw;
};

// Groups without rows at both ends and between, one that is a tile and a row, one of a row, one of a tile.
const std::vector<std::int32_t> offsets{0, 0, 65, 65, 66, 130, 130};

template <class T, class G = T>
void check_type() {
  SECTION("aligned lines with a rest that is no 16 bytes") { grouped<T, G>({offsets, 71, 67, 72, 72, 72 * 67, 0}).check(); }
  SECTION("nothing aligned") { grouped<T, G>({offsets, 71, 67, 71, 67, 71 * 67 + 1, 1}).check(); }
  SECTION("rows alone and among others") {
    grouped<T, G> g({offsets, 71, 67, 72, 72, 72 * 67, 0});
    for (const index i : {0, 63, 64, 65, 66, 129}) g.check_alone(i);
  }
  SECTION("one element") { grouped<T, G>({{0, 1}, 1, 1, 1, 1, 1, 0}).check(); }
  SECTION("offsets beyond 2^31") {
    const index far = index{1} << 31;
    grouped<T, G>({{0, 1, 3}, 2, 3, far, far + 8, 4 * far, 0}).check();
  }
}

}  // namespace

TEST_CASE("grouped products of cuda in float, tile by tile", "[cuda_kernels]") { check_type<float>(); }
TEST_CASE("grouped products of cuda in double, tile by tile", "[cuda_kernels]") { check_type<double>(); }
TEST_CASE("grouped products of cuda in bf16, tile by tile", "[cuda_kernels]") { check_type<gyre::bfloat16, float>(); }
TEST_CASE("grouped products of cuda in bf16 with gradients in bf16, tile by tile", "[cuda_kernels]") {
  check_type<gyre::bfloat16>();
}

TEST_CASE("grouped products of cuda refuse what the host can see", "[cuda_kernels]") {
  gyre::simulated_cuda b;
  const matrix_view<float> y(nullptr, 3, 4);
  const matrix_view<const float> x(nullptr, 3, 5);
  const gyre::weight_matrix<float, gyre::detail::nothing_prepared<float>> w{{nullptr, 4, 5}, nullptr};
  const std::int32_t somewhere[3] = {};
  CHECK_THROWS_WITH(b.grouped_product(x, w, {nullptr, 2, 20}, y, false), Catch::Contains("grouped_product: 2 groups without"));
  CHECK_THROWS_WITH(b.grouped_product(x, w, {nullptr, -1, 20}, y, false), Catch::Contains("-1 groups"));
  CHECK_THROWS_WITH(b.grouped_product(x, w, {nullptr, 0, 20}, y, false),
                    Catch::Contains("0 groups, but the operands have 3 rows"));
  CHECK_THROWS_WITH(b.grouped_product_input_gradient(x, w, {somewhere, 2, 20}, y, false), Catch::Contains("result 3 x 4 of"));
  CHECK_THROWS_WITH(
      b.grouped_product_weight_gradient(x, matrix_view<const float>(y), {somewhere, 2, 19}, matrix_view<float>(nullptr, 5, 4)),
      Catch::Contains("overlap when they are 19 scalars apart"));
}
