// Views of gyre as matrices of Eigen and back, without copies: for programs that hold their data in Eigen. Not part of gyre.hpp,
// so that a program without Eigen does not compile it.
#pragma once

#include <type_traits>

#include <Eigen/Core>

#include <gyre/core/types.hpp>

GYRE_BEGIN

/// What a matrix_view<T> is in Eigen: row-major, rows a run-time distance apart, aligned to nothing. Owns nothing, so that units
/// compiled for different processors may exchange it.
template <class T>
using eigen_view =
    Eigen::Map<std::conditional_t<std::is_const_v<T>,
                                  const Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                                  Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>,
               Eigen::Unaligned, Eigen::OuterStride<>>;

/// The same elements for Eigen; valid as long as x's memory is.
template <class T>
eigen_view<T> to_eigen(matrix_view<T> x) {
  return {x.data, x.rows, x.cols, Eigen::OuterStride<>(x.stride)};
}

namespace detail {

template <class Matrix>
constexpr void require_rows() {
  using plain = std::remove_cvref_t<Matrix>;
  static_assert(plain::IsRowMajor, "from_eigen: this matrix is column-major; gyre's matrices are row-major");
  static_assert(plain::InnerStrideAtCompileTime == 1, "from_eigen: the elements of a row must be adjacent");
}

}  // namespace detail

/// The same elements for gyre: of a row-major matrix, map, or block of one, whose elements in a row are adjacent. Valid as long
/// as the matrix is and does not change its size.
template <class Derived>
matrix_view<typename Derived::Scalar> from_eigen(Eigen::DenseBase<Derived>& x) {
  detail::require_rows<Derived>();
  return {x.derived().data(), x.rows(), x.cols(), x.outerStride()};
}
template <class Derived>
matrix_view<const typename Derived::Scalar> from_eigen(const Eigen::DenseBase<Derived>& x) {
  detail::require_rows<Derived>();
  return {x.derived().data(), x.rows(), x.cols(), x.outerStride()};
}
template <class Derived>
void from_eigen(const Eigen::DenseBase<Derived>&& x) = delete;  // of a matrix that is about to die

GYRE_END
