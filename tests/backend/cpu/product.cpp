#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
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
    std::mt19937 random(seed);
    std::uniform_real_distribution<T> uniform(T(-1), T(1));
    for (index i = 0; i < rows; ++i)
      for (index j = 0; j < cols; ++j) at(i, j) = uniform(random);
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

/// Compares C with c0 + alpha sum_k a(i, k) b(k, j), summed in long double. A chain of d multiply-adds begun by c0, each of at
/// most two roundings of which one falls on the product, differs by at most gamma(d + 1) (|c0| + |alpha| sum |a| |b|); the
/// multiplication by alpha adds one rounding.
template <class T, class A, class B>
void check(const matrix<T>& c, const matrix<T>& c0, bool accumulate, index depth, T alpha, A a, B b) {
  const long double unit = std::numeric_limits<T>::epsilon() / 2;
  const long double n = static_cast<long double>(depth + 2), gamma = n * unit / (1 - n * unit);
  double worst = 0;
  index wi = 0, wj = 0;
  for (index i = 0; i < c.rows; ++i)
    for (index j = 0; j < c.cols; ++j) {
      long double sum = accumulate ? c0.at(i, j) : T(0), size = std::abs(sum);
      for (index k = 0; k < depth; ++k) {
        const long double term = static_cast<long double>(alpha) * a(i, k) * b(k, j);
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
  for (const auto [n, out, in] : odd_sizes)
    for (bool accumulate : {false, true}) {
      const matrix<TestType> x(n, in, 1), w(out, in, 2);
      const matrix<TestType> y0(n, out, 3);
      matrix<TestType> y = y0;
      packed_matrix<TestType> packed(in, out);
      packed.pack_transposed(pool, w.view());
      detail::multiply(pool, y.view(), x.view(), packed, accumulate);
      check(
          y, y0, accumulate, in, TestType(1), [&](index i, index k) { return x.at(i, k); },
          [&](index k, index j) { return w.at(j, k); });
    }
}

TEMPLATE_TEST_CASE("input gradient: dx (+)= dy w", "", float, double) {
  thread_pool pool(2);
  for (const auto [n, out, in] : odd_sizes)
    for (bool accumulate : {false, true}) {
      const matrix<TestType> dy(n, out, 1), w(out, in, 2);
      const matrix<TestType> dx0(n, in, 3);
      matrix<TestType> dx = dx0;
      packed_matrix<TestType> packed(out, in);
      packed.pack(pool, w.view());
      detail::multiply(pool, dx.view(), dy.view(), packed, accumulate);
      check(
          dx, dx0, accumulate, out, TestType(1), [&](index i, index k) { return dy.at(i, k); },
          [&](index k, index j) { return w.at(k, j); });
    }
}

TEMPLATE_TEST_CASE("weight gradient: dw += dy^T x", "", float, double) {
  thread_pool pool(2);
  for (const auto [n, out, in] : odd_sizes) {
    const matrix<TestType> dy(n, out, 1), x(n, in, 2);
    const matrix<TestType> dw0(out, in, 3);
    matrix<TestType> dw = dw0;
    detail::multiply_transposed<TestType>(pool, dw.view(), dy.view(), x.view());
    check(
        dw, dw0, true, n, TestType(1), [&](index o, index k) { return dy.at(k, o); },
        [&](index k, index j) { return x.at(k, j); });
  }
}

}  // namespace
}  // namespace gyre
