// Inside GCC 12's own AVX-512 intrinsics, which Eigen calls (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <gyre/interop/eigen.hpp>

#include <catch2/catch.hpp>
#include <complex>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/core/random_sequence.hpp>

namespace {

template <class T>
using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

TEST_CASE("a view and its Eigen map are the same elements", "[interop]") {
  std::vector<double> memory(4 * 7);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<double>(i);
  const gyre::matrix_view<double> whole(memory.data(), 4, 7), part = whole.slice(1, 2).columns(2, 3);
  auto map = gyre::to_eigen(part);
  REQUIRE(map.rows() == 2);
  REQUIRE(map.cols() == 3);
  for (gyre::index i = 0; i < 2; ++i)
    for (gyre::index j = 0; j < 3; ++j) CHECK(&map(i, j) == part[i] + j);
  map.setZero();
  CHECK(memory[1 * 7 + 1] == 8);
  CHECK(memory[1 * 7 + 2] == 0);
  CHECK(memory[2 * 7 + 4] == 0);
  CHECK(memory[2 * 7 + 5] == 19);

  const auto read_only = gyre::to_eigen(gyre::matrix_view<const double>(part));
  static_assert(!std::is_assignable_v<decltype(read_only(0, 0)), double>);
  CHECK(&read_only.coeffRef(1, 1) == part[1] + 1);

  const auto back = gyre::from_eigen(map);
  CHECK(back.data == part.data);
  CHECK((back.rows == part.rows && back.cols == part.cols && back.stride == part.stride));
}

TEST_CASE("Eigen's matrices, blocks and vectors become views", "[interop]") {
  matrix<float> x = matrix<float>::Random(5, 6);
  const gyre::matrix_view<float> all = gyre::from_eigen(x);
  CHECK((all.data == x.data() && all.rows == 5 && all.cols == 6 && all.stride == 6));

  auto block = x.block(1, 2, 3, 2);
  const gyre::matrix_view<float> part = gyre::from_eigen(block);
  CHECK(part[2] + 1 == &x(3, 3));
  CHECK((part.rows == 3 && part.cols == 2 && part.stride == 6));

  const matrix<float>& constant = x;
  static_assert(std::is_same_v<decltype(gyre::from_eigen(constant)), gyre::matrix_view<const float>>);

  Eigen::Matrix<std::complex<double>, 1, Eigen::Dynamic> row(4);
  CHECK(gyre::from_eigen(row).cols == 4);
  CHECK(gyre::from_eigen(row).rows == 1);

  gyre::matrix_view<float> nothing;
  CHECK(gyre::to_eigen(nothing).size() == 0);
}

// Two libraries that know nothing of each other: |c - c'| <= 2 gamma_n |a| |b| elementwise (Higham, Accuracy and Stability of
// Numerical Algorithms, 3.5), each of the two within gamma_n.
TEST_CASE("products of the cpu backend agree with Eigen's", "[interop][cpu]") {
  const gyre::index rows = 33, depth = 71, cols = 45;
  gyre::random_sequence numbers(gyre::random_stream(gyre::seed{5}, gyre::purpose::task), 0);
  const auto random = [&](gyre::index r, gyre::index c) {
    matrix<float> x(r, c);
    for (gyre::index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(numbers.uniform() - 0.5);
    return x;
  };
  const matrix<float> x = random(rows, depth), w = random(cols, depth);
  matrix<float> y(rows, cols);
  gyre::cpu device{2};
  device.product(gyre::from_eigen(x), {gyre::from_eigen(w)}, gyre::from_eigen(y), false);
  const matrix<float> expected = x * w.transpose();
  const float gamma = static_cast<float>(depth) * 0x1p-24f / (1 - static_cast<float>(depth) * 0x1p-24f);
  const matrix<float> bound = 2 * gamma * (x.cwiseAbs() * w.cwiseAbs().transpose());
  CHECK(((y - expected).cwiseAbs().array() <= bound.array()).all());
}
