#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gyre/backend/cpu/product.hpp>

namespace gyre {
namespace {

/// A matrix inside a larger buffer, rows further apart than they are long, filled with numbers of both signs. What lies between
/// and behind the rows is a canary.
template <class T>
struct matrix {
  index rows, cols, stride;
  std::vector<T> storage;

  static constexpr T canary = T(-12345);

  matrix(index rows_, index cols_, unsigned seed, index gap = 3)
      : rows(rows_), cols(cols_), stride(cols_ + gap), storage(static_cast<std::size_t>(rows_ * (cols_ + gap) + 8), canary) {
    std::uint64_t random = seed;
    for (index i = 0; i < rows; ++i)
      for (index j = 0; j < cols; ++j) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        at(i, j) = static_cast<T>(static_cast<std::int64_t>(random) >> 11) / T(std::int64_t{1} << 52);
      }
  }
  T& at(index i, index j) { return storage[static_cast<std::size_t>(i * stride + j)]; }
  const T& at(index i, index j) const { return storage[static_cast<std::size_t>(i * stride + j)]; }
  matrix_view<T> view() { return {storage.data(), rows, cols, stride}; }
  matrix_view<const T> view() const { return {storage.data(), rows, cols, stride}; }
  bool gaps_intact() const {
    for (index i = 0; i < rows; ++i)
      for (index j = cols; j < stride; ++j)
        if (at(i, j) != canary) return false;
    for (std::size_t n = static_cast<std::size_t>(rows * stride); n < storage.size(); ++n)
      if (storage[n] != canary) return false;
    return true;
  }
  bool operator==(const matrix& other) const {
    return storage.size() == other.storage.size() &&
           (storage.empty() || std::memcmp(storage.data(), other.storage.data(), storage.size() * sizeof(T)) == 0);
  }
};

/// Compares C with c0 + sum_k a(i, k) b(k, j), summed in long double. A chain of d multiply-adds begun by c0, each of at most two
/// roundings of which one falls on the product, differs by at most gamma(d + 1) (|c0| + sum |a| |b|).
template <class T, class A, class B>
void check(const matrix<T>& c, const matrix<T>& c0, bool accumulate, index depth, A a, B b) {
  const long double unit = std::numeric_limits<T>::epsilon() / 2;
  const long double n = static_cast<long double>(depth + 1), gamma = n * unit / (1 - n * unit);
  double worst = 0;
  index wi = 0, wj = 0;
  for (index i = 0; i < c.rows; ++i)
    for (index j = 0; j < c.cols; ++j) {
      long double sum = accumulate ? c0.at(i, j) : T(0), size = std::abs(sum);
      for (index k = 0; k < depth; ++k) {
        const long double term = static_cast<long double>(a(i, k)) * b(k, j);
        sum += term;
        size += std::abs(term);
      }
      const long double error = std::abs(c.at(i, j) - sum);
      const double ratio = error == 0 ? 0 : size > 0 ? static_cast<double>(error / (gamma * size)) : INFINITY;
      if (!(ratio <= worst)) worst = ratio, wi = i, wj = j;
    }
  INFO(c.rows << " x " << c.cols << " depth " << depth << ": worst element (" << wi << ", " << wj << "), error / bound "
              << worst);
  REQUIRE(worst <= 1);
  REQUIRE(c.gaps_intact());
}

struct sizes {
  index n, out, in;
};

const sizes odd_sizes[] = {{0, 5, 7},    {5, 0, 7},       {5, 7, 0},     {1, 1, 1},      {1, 257, 129},
                           {2, 40, 7},   {3, 129, 40},    {4, 33, 65},   {5, 100, 31},   {7, 7, 7},
                           {8, 64, 257}, {13, 40, 129},   {16, 96, 64},  {29, 257, 40},  {40, 129, 257},
                           {129, 7, 40}, {129, 257, 129}, {257, 129, 7}, {9, 300, 1000}, {130, 70, 801}};

TEMPLATE_TEST_CASE("forward product: y (+)= x w^T", "", float, double) {
  thread_pool pool(2);
  for (const auto& [n, out, in] : odd_sizes)
    for (bool accumulate : {false, true}) {
      const matrix<TestType> x(n, in, 1), w(out, in, 2);
      const matrix<TestType> y0(n, out, 3);
      matrix<TestType> y = y0;
      packed_matrix<TestType> packed(in, out);
      packed.pack_transposed(pool, w.view());
      detail::multiply(pool, y.view(), x.view(), packed, accumulate);
      check(
          y, y0, accumulate, in, [&](index i, index k) { return x.at(i, k); }, [&](index k, index j) { return w.at(j, k); });
    }
}

TEMPLATE_TEST_CASE("input gradient: dx (+)= dy w", "", float, double) {
  thread_pool pool(2);
  for (const auto& [n, out, in] : odd_sizes)
    for (bool accumulate : {false, true}) {
      const matrix<TestType> dy(n, out, 1), w(out, in, 2);
      const matrix<TestType> dx0(n, in, 3);
      matrix<TestType> dx = dx0;
      packed_matrix<TestType> packed(out, in);
      packed.pack(pool, w.view());
      detail::multiply(pool, dx.view(), dy.view(), packed, accumulate);
      check(
          dx, dx0, accumulate, out, [&](index i, index k) { return dy.at(i, k); },
          [&](index k, index j) { return w.at(k, j); });
    }
}

TEMPLATE_TEST_CASE("weight gradient: dw += dy^T x", "", float, double) {
  thread_pool pool(2);
  for (const auto& [n, out, in] : odd_sizes) {
    const matrix<TestType> dy(n, out, 1), x(n, in, 2);
    const matrix<TestType> dw0(out, in, 3);
    matrix<TestType> dw = dw0;
    detail::multiply_transposed<TestType>(pool, dw.view(), dy.view(), x.view());
    check(
        dw, dw0, true, n, [&](index o, index k) { return dy.at(k, o); }, [&](index k, index j) { return x.at(k, j); });
  }
}

TEMPLATE_TEST_CASE("product inside a task of a factor that lies as it is", "", float, double) {
  constexpr index panel = packed_matrix<TestType>::panel;
  for (index rows : {0, 1, 2, 3, 5, 8, 14, 33})
    for (index depth : {0, 1, 4, 131})
      for (index cols : {panel, 3 * panel, 5 * panel}) {
        const matrix<TestType> a(rows, depth, 1), b(depth, cols, 2), c0(rows, cols, 3);
        matrix<TestType> c = c0;
        detail::multiply_panels<TestType>(c.view(), a.view(), b.view().data, b.stride, panel, true);
        check(
            c, c0, true, depth, [&](index i, index k) { return a.at(i, k); }, [&](index k, index j) { return b.at(k, j); });
      }
}

TEMPLATE_TEST_CASE("a row alone has the bits it has among 2048 rows", "", float, double) {
  thread_pool pool(2);
  for (const auto& [out, in] : {std::pair<index, index>{257, 129}, {96, 1000}, {1, 40}}) {
    const index n = 2048;
    const matrix<TestType> x(n, in, 1), w(out, in, 2);
    packed_matrix<TestType> packed(in, out);
    packed.pack_transposed(w.view());
    for (bool accumulate : {false, true}) {
      const matrix<TestType> y0(n, out, 3);
      matrix<TestType> all = y0;
      detail::multiply(pool, all.view(), x.view(), packed, accumulate);
      for (index count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 15, 16, 17, 28, 100})
        for (index first : {index{0}, index{37}, n - count}) {
          matrix<TestType> some = y0;
          detail::multiply(pool, some.view().slice(first, count), x.view().slice(first, count), packed, accumulate);
          const std::size_t bytes = static_cast<std::size_t>(out) * sizeof(TestType);
          for (index i = first; i < first + count; ++i) {
            CAPTURE(out, in, count, i);
            REQUIRE(std::memcmp(some.view()[i], all.view()[i], bytes) == 0);
          }
        }
    }
  }
}

TEMPLATE_TEST_CASE("bits do not depend on the number of threads", "[threads]", float, double) {
  for (const auto& [n, out, in] : {sizes{300, 257, 129}, {1, 1024, 256}, {16, 130, 801}, {900, 40, 300}}) {
    const matrix<TestType> x(n, in, 1), w(out, in, 2), dy(n, out, 4), y0(n, out, 3), dx0(n, in, 5), dw0(out, in, 6);
    matrix<TestType> y1 = y0, dx1 = dx0, dw1 = dw0;
    for (int threads : {1, 2, 3}) {
      thread_pool pool(threads);
      for (int repeat = 0; repeat < 3; ++repeat) {
        matrix<TestType> y = y0, dx = dx0, dw = dw0;
        packed_matrix<TestType> forward(in, out), backward(out, in);
        forward.pack_transposed(pool, w.view());
        backward.pack(pool, w.view());
        detail::multiply(pool, y.view(), x.view(), forward, true);
        detail::multiply(pool, dx.view(), dy.view(), backward, true);
        detail::multiply_transposed<TestType>(pool, dw.view(), dy.view(), x.view());
        if (threads == 1 && repeat == 0) y1 = y, dx1 = dx, dw1 = dw;
        REQUIRE(y == y1);
        REQUIRE(dx == dx1);
        REQUIRE(dw == dw1);
      }
    }
  }
}

TEMPLATE_TEST_CASE("weight gradients of two batches add up to the bits of the batches together", "", float, double) {
  thread_pool pool(2);
  const matrix<TestType> dy(700, 50, 1), x(700, 70, 2), dw0(50, 70, 3);
  matrix<TestType> together = dw0, apart = dw0;
  detail::multiply_transposed<TestType>(pool, together.view(), dy.view(), x.view());
  for (const auto& [first, count] : {std::pair<index, index>{0, 123}, {123, 1}, {124, 576}})
    detail::multiply_transposed<TestType>(pool, apart.view(), dy.view().slice(first, count), x.view().slice(first, count));
  REQUIRE(together == apart);
}

TEMPLATE_TEST_CASE("a packed matrix may be a range of columns, live in the caller's memory, and be packed by any threads", "",
                   float, double) {
  thread_pool pool(3);
  const index n = 20, out = 70, in = 90, first = 13, count = 41;
  const matrix<TestType> x(n, count, 1), w(out, in, 2), y0(n, out, 3);
  const index size = packed_matrix<TestType>::size(count, out);
  detail::aligned_memory memory = detail::allocate_aligned(static_cast<std::size_t>(size) * sizeof(TestType));
  packed_matrix<TestType> lent(reinterpret_cast<TestType*>(memory.get()), count, out), own(count, out);
  lent.pack_transposed(w.view().columns(first, count));
  own.pack_transposed(pool, w.view().columns(first, count));
  REQUIRE(std::memcmp(lent.data(), own.data(), static_cast<std::size_t>(size) * sizeof(TestType)) == 0);
  matrix<TestType> y = y0;
  detail::multiply(pool, y.view(), x.view(), lent, false);
  check(
      y, y0, false, count, [&](index i, index k) { return x.at(i, k); }, [&](index k, index j) { return w.at(j, first + k); });
}

TEST_CASE("products whose sizes do not meet are refused with the numbers") {
  thread_pool pool(1);
  const matrix<float> x(3, 4, 1), w(5, 6, 2);
  matrix<float> y(3, 5, 3);
  packed_matrix<float> packed(6, 5);
  packed.pack_transposed(w.view());
  REQUIRE_THROWS_WITH(detail::multiply(pool, y.view(), x.view(), packed, false), Catch::Contains("3 x 4 and 6 x 5"));
  REQUIRE_THROWS_WITH(packed.pack(w.view()), Catch::Contains("5 x 6"));
  REQUIRE_THROWS_AS(packed_matrix<float>(-1, 5), error);
}

}  // namespace
}  // namespace gyre
