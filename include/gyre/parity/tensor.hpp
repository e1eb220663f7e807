// Operands of a call outside any backend: their bytes on the host, and what the reference says about them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>
#include <gyre/io/dtype.hpp>
#include <gyre/ops/shapes.hpp>
#include <gyre/parity/bounded.hpp>

GYRE_BEGIN
namespace parity {

/// How a call uses an operand. `updated`: in place, or accumulated; the old content matters.
enum class access : unsigned char { input, output, updated };

/// An operand's elements, row after row without gaps.
struct tensor {
  std::string name;
  dtype type = dtype::f32;
  access how = access::input;
  index rows = 0, cols = 0;
  std::vector<std::byte> bytes;

  std::size_t item() const { return static_cast<std::size_t>(bits_of(type)) / 8; }
  index size() const { return rows * cols; }
  /// Element number `i` as a number.
  long double operator[](index i) const {
    const std::byte* at = bytes.data() + static_cast<std::size_t>(i) * item();
    const auto load = [&]<class T>(T x) {
      std::memcpy(&x, at, sizeof(T));
      return static_cast<long double>(x);
    };
    switch (type) {
      case dtype::f32:
        return load(float());
      case dtype::f64:
        return load(double());
      case dtype::i32:
        return load(std::int32_t());
      case dtype::bf16: {
        std::uint16_t bits = 0;
        std::memcpy(&bits, at, sizeof bits);
        return float_from_bf16(bits);
      }
      default:
        fail("parity: operands are F32, F64, BF16 or I32, not ", name_of(type));
    }
  }
  bool same_bits(index i, const tensor& other) const {
    return std::memcmp(bytes.data() + static_cast<std::size_t>(i) * item(),
                       other.bytes.data() + static_cast<std::size_t>(i) * item(), item()) == 0;
  }
};

/// What an output should be, and how far a backend may be off.
struct expectation {
  static constexpr long double deviations = 4;
  std::string name;
  index rows = 0, cols = 0;
  std::vector<long double> values, tolerances;
  std::vector<double> likely;  // deviations

  /// What takes the place of the worst case in passes of many calls: four deviations, if that is less.
  void expect_likely() {
    for (std::size_t i = 0; i < values.size(); ++i)
      tolerances[i] = (std::min)(tolerances[i], deviations * static_cast<long double>(likely[i]));
  }
};

namespace detail {

template <class T>
struct is_bounded : std::false_type {};
template <class Of>
struct is_bounded<bounded<Of>> : std::true_type {};

/// What stands for an element of type T in the reference's bounded numbers: whole numbers stay.
template <class T>
using bounded_t = std::conditional_t<std::is_integral_v<T>, T, bounded<T>>;

/// Copies elements of a view into a tensor.
template <class T>
tensor copy_of(std::string_view name, access how, matrix_view<const T> x) {
  tensor t{std::string(name), dtype_of<T>(), how, x.rows, x.cols, {}};
  t.bytes.resize(static_cast<std::size_t>(x.size()) * sizeof(T));
  const std::size_t row = static_cast<std::size_t>(x.cols) * sizeof(T);
  for (index i = 0; row > 0 && i < x.rows; ++i) std::memcpy(t.bytes.data() + static_cast<std::size_t>(i) * row, x[i], row);
  return t;
}
template <class T>
expectation expected(std::string_view name, matrix_view<const T> x) {
  expectation e{std::string(name), x.rows, x.cols, {}, {}, {}};
  for (index i = 0; i < x.rows; ++i)
    for (index j = 0; j < x.cols; ++j) {
      if constexpr (is_bounded<T>::value) {
        e.values.push_back(x[i][j].value()), e.tolerances.push_back(x[i][j].error());
        e.likely.push_back(std::sqrt(x[i][j].variance()));
      } else {
        e.values.push_back(static_cast<long double>(x[i][j])), e.tolerances.push_back(0), e.likely.push_back(0);
      }
    }
  return e;
}

/// The matrices of all groups as one piece of memory; one matrix as it is.
template <class T>
matrix_view<const T> spread_out(matrix_view<const T> w, row_groups groups) {
  if (groups.stride == 0) return w;
  const index one = w.rows > 0 ? (w.rows - 1) * w.stride + w.cols : 0;
  return {w.data, 1, groups.count > 0 ? (groups.count - 1) * groups.stride + one : 0};
}

}  // namespace detail
}  // namespace parity
GYRE_END
