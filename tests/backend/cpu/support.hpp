// Matrices for the tests of operations: strided, random, with margins that show writes outside.
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <gyre/core/layout.hpp>
#include <gyre/core/random.hpp>
#include <gyre/core/types.hpp>

namespace gyre_test {

using gyre::index;
using gyre::matrix_view;

/// A matrix with unused columns between its rows, and nothing behind its last element, so that the address sanitizer sees who
/// reads on. Begins as NaN everywhere inside.
template <class T>
class grid {
 public:
  grid(index rows, index cols, index margin = 3)
      : values_(static_cast<std::size_t>(rows > 0 ? (rows - 1) * (cols + margin) + cols : 0), untouched),
        view_(values_.data(), rows, cols, cols + margin) {
    for (index i = 0; i < rows; ++i)
      for (index j = 0; j < cols; ++j) view_[i][j] = std::numeric_limits<T>::quiet_NaN();
  }
  grid(const grid& g) : values_(g.values_), view_(values_.data(), g.view_.rows, g.view_.cols, g.view_.stride) {}
  grid& operator=(const grid&) = delete;

  matrix_view<T> view() { return view_; }
  matrix_view<const T> view() const { return view_; }
  matrix_view<const T> read() const { return view_; }
  T* operator[](index i) const { return view_[i]; }
  T* data() const { return view_.data; }

  bool margins_intact() const {
    for (index i = 0; i + 1 < view_.rows; ++i)
      for (index j = view_.cols; j < view_.stride; ++j)
        if (values_[static_cast<std::size_t>(i * view_.stride + j)] != untouched) return false;
    return true;
  }
  template <class U>
  grid<U> as() const {
    grid<U> r(view_.rows, view_.cols, view_.stride - view_.cols);
    for (index i = 0; i < view_.rows; ++i)
      for (index j = 0; j < view_.cols; ++j) r[i][j] = static_cast<U>(view_[i][j]);
    return r;
  }
  grid absolute() const {
    grid r(*this);
    for (index i = 0; i < view_.rows; ++i)
      for (index j = 0; j < view_.cols; ++j) r[i][j] = std::fabs(r[i][j]);
    return r;
  }

 private:
  static constexpr T untouched = T(12345);
  std::vector<T> values_;
  matrix_view<T> view_;
};

/// Standard normal numbers times `scale`; every call of a test takes another `number`.
template <class T>
grid<T> random_grid(index rows, index cols, std::uint64_t number, double scale = 1, index margin = 3) {
  grid<T> g(rows, cols, margin);
  const gyre::random_stream stream(gyre::seed{1234}, gyre::purpose::task, number);
  for (index i = 0; i < rows; ++i)
    stream.fill_normal(std::span<T>(g[i], static_cast<std::size_t>(cols)),
                       gyre::counter{0, static_cast<std::uint32_t>(i), 0, 0}, scale);
  return g;
}

inline gyre::batch_layout ragged(std::initializer_list<index> counts) {
  gyre::batch_layout layout;
  std::uint64_t key = 100;
  for (const index n : counts) layout.add(n, 0, key++);
  return layout;
}

template <class T>
constexpr long double epsilon = std::numeric_limits<T>::epsilon();

}  // namespace gyre_test
