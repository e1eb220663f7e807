// Scalars, views and shapes: the vocabulary of every other header.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <gyre/config.hpp>

GYRE_BEGIN

/// Signed sizes and offsets: 64 bits wide, so that 2^31 elements are an ordinary size.
using index = std::ptrdiff_t;

/// A token's number in the vocabulary. Negative values mark "no token" (targets that do not count).
using token = std::int32_t;

/// Seed of every random stream that a call uses. A type of its own, so that it cannot be confused with a size.
struct seed {
  std::uint64_t value = 0;
  constexpr bool operator==(const seed&) const = default;
};

/// The real type beneath a scalar: double for std::complex<double>, T itself otherwise.
template <class T>
struct real_of {
  using type = std::remove_cv_t<T>;
};
template <class T>
struct real_of<std::complex<T>> {
  using type = T;
};
template <class T>
struct real_of<const std::complex<T>> {
  using type = T;
};
template <class T>
using real_t = typename real_of<T>::type;

/// What sums and functions of numbers of type T are computed in: T itself, or fp32 where memory holds less.
template <class T>
struct compute_of {
  using type = T;
};
template <class T>
using compute_t = typename compute_of<std::remove_cv_t<T>>::type;

/// What long sums of numbers of type T are computed in where the contract says double: a scalar that stands for others has its own.
template <class T>
struct double_of {
  using type = double;
};
template <class T>
using double_t = typename double_of<T>::type;

/// What becomes of a number where a backend may round it to T, or leave it as it was computed. Left as it is, unless T is a scalar
/// that keeps account of roundings (gyre::parity).
template <class T>
struct optional_rounding {
  template <class S>
  static constexpr const S& of(const S& x) {
    return x;
  }
};
/// A number in compute_t<T> that the contract allows to be rounded to T where it is used next.
template <class T, class S>
constexpr S may_round(const S& x) {
  return optional_rounding<std::remove_cv_t<T>>::of(x);
}

template <class T>
constexpr real_t<T> real_part(const T& x) {
  if constexpr (std::is_same_v<real_t<T>, std::remove_cv_t<T>>)
    return x;
  else
    return x.real();
}

/// A matrix somewhere in memory, all sizes dynamic: what an operation of a backend sees. Row-major; `stride` is the distance
/// in elements from one row to the next. A view owns nothing and is passed by value.
template <class T>
struct matrix_view {
  T* data = nullptr;
  index rows = 0, cols = 0, stride = 0;

  constexpr matrix_view() = default;
  constexpr matrix_view(T* data_, index rows_, index cols_, index stride_)
      : data(data_), rows(rows_), cols(cols_), stride(stride_) {}
  constexpr matrix_view(T* data_, index rows_, index cols_) : matrix_view(data_, rows_, cols_, cols_) {}

  constexpr T* operator[](index row) const { return data + row * stride; }
  constexpr index size() const { return rows * cols; }
  constexpr bool contiguous() const { return stride == cols || rows <= 1; }
  // A template, because nvcc warns of a conversion of const T to itself.
  template <class U>
  requires(std::is_same_v<U, const T> && !std::is_const_v<T>) constexpr operator matrix_view<U>() const {
    return {data, rows, cols, stride};
  }
  /// Columns [first, first + count) of every row.
  constexpr matrix_view columns(index first, index count) const { return {data + first, rows, count, stride}; }
  /// Rows [first, first + count).
  constexpr matrix_view slice(index first, index count) const { return {data + first * stride, count, cols, stride}; }
};

/// Activations: tokens are dynamic, features static. Contiguous. Layers speak in rows, so that widths that do not meet fail to
/// compile; `view()` erases the width where an operation begins.
template <class T, int Cols>
struct rows {
  using scalar = T;
  static constexpr int cols = Cols;
  T* data = nullptr;
  index count = 0;  // tokens

  constexpr T* operator[](index row) const { return data + row * Cols; }
  constexpr index size() const { return count * Cols; }
  constexpr matrix_view<T> view() const { return {data, count, Cols, Cols}; }
  template <class U>
  requires(std::is_same_v<U, const T> && !std::is_const_v<T>) constexpr operator rows<U, Cols>() const { return {data, count}; }
};

GYRE_END
