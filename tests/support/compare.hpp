// Comparison of matrices: says where and how two differ.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>

#include <gyre/core/types.hpp>

namespace gyre_test {

/// Empty if |got - want| <= tolerance(row, column) everywhere (NaN agrees with NaN, an infinity with itself); otherwise a
/// description of the element that exceeds its tolerance most. `tolerance` may also be one number.
template <class A, class B, class Tolerance>
std::string differences(gyre::matrix_view<A> got, gyre::matrix_view<B> want, Tolerance tolerance) {
  std::ostringstream text;
  text.precision(20);
  if (got.rows != want.rows || got.cols != want.cols) {
    text << got.rows << " x " << got.cols << " instead of " << want.rows << " x " << want.cols;
    return text.str();
  }
  const auto allowed = [&](gyre::index i, gyre::index j) {
    if constexpr (std::is_arithmetic_v<Tolerance>)
      return static_cast<long double>(tolerance) + 0 * static_cast<long double>(i + j);
    else
      return static_cast<long double>(tolerance(i, j));
  };
  long double worst = 1;
  gyre::index row = -1, col = -1, count = 0;
  for (gyre::index i = 0; i < got.rows; ++i)
    for (gyre::index j = 0; j < got.cols; ++j) {
      const long double a = got[i][j], b = want[i][j], limit = allowed(i, j);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      long double excess = std::fabs(a - b) / limit;
      if (std::isnan(excess) || limit <= 0) excess = std::numeric_limits<long double>::infinity();
      if (excess <= 1) continue;
      ++count;
      if (excess > worst || row < 0) worst = excess, row = i, col = j;
    }
  if (count == 0) return {};
  text << count << " of " << got.size() << " elements differ; worst at (" << row << ", " << col << "): " << got[row][col]
       << " instead of " << want[row][col] << ", difference " << static_cast<long double>(got[row][col]) - want[row][col]
       << ", tolerance " << allowed(row, col);
  return text.str();
}

/// Empty if all bits agree; otherwise a description of the first element that does not.
template <class A, class B>
std::string bit_differences(gyre::matrix_view<A> got, gyre::matrix_view<B> want) {
  static_assert(std::is_same_v<std::remove_const_t<A>, std::remove_const_t<B>>);
  std::ostringstream text;
  text.precision(20);
  if (got.rows != want.rows || got.cols != want.cols) {
    text << got.rows << " x " << got.cols << " instead of " << want.rows << " x " << want.cols;
    return text.str();
  }
  for (gyre::index i = 0; i < got.rows; ++i)
    for (gyre::index j = 0; j < got.cols; ++j)
      if (std::memcmp(got[i] + j, want[i] + j, sizeof(A)) != 0) {
        text << "bits differ at (" << i << ", " << j << "): " << got[i][j] << " and " << want[i][j];
        return text.str();
      }
  return {};
}

}  // namespace gyre_test
