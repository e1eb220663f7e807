// A scalar that knows how far a backend may be off: it runs through the reference as any other, so that operations, layers and
// training steps get their tolerance from the same rules. docs/parity.md has the derivation.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <type_traits>

#include <gyre/core/precision.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN
namespace parity {

/// A value in long double, and a bound of the error that a backend with scalars `Of` may make, to first order in its epsilon.
/// A number that additions made remembers its terms, for another backend may add them in any order and in any pieces:
///   sum of n > 2 terms     errors of the terms, and (2 n - 1) eps sum|terms|: with a product's rounding the contract's 2 n eps
///   sum of 2 terms         errors of the terms, and eps |sum|: there is only one order
///   product                errors of the operands times the other operand, and eps / 2 of the result
///   quotient, sqrt         error of the operands times the derivatives, and eps of the result: some hardware's are not the nearest
///   exp, log, atan2        the same with 4 eps
/// An exponential that overflows may be infinite, and one below twice the smallest normal number 0.
template <class Of>
class bounded {
 public:
  static constexpr long double epsilon = std::numeric_limits<Of>::epsilon();
  static constexpr long double least = std::numeric_limits<Of>::denorm_min();  // rounding of a result that is denormal
  static constexpr long double function_error = 4 * epsilon;

  constexpr bounded() = default;
  /// A constant: exact if `Of` has it, rounded otherwise.
  template <class A>
  requires std::is_arithmetic_v<A>
  constexpr bounded(A x) : bounded(static_cast<long double>(x), rounding(static_cast<long double>(x))) {}
  constexpr bounded(long double value, long double error) : value_(value), size_(magnitude(value)), base_(error) {}

  constexpr long double value() const { return value_; }
  constexpr long double real() const { return value_; }
  /// Of a backend's result that stands for this number.
  constexpr long double error() const {
    const long double sum = terms_ <= 1 ? 0 : terms_ <= 2 ? epsilon * magnitude(value_) : (2 * terms_ - 1) * epsilon * size_;
    return (base_ + sum) * (1 + 64 * epsilon);  // the rest: what is neglected beyond the first order
  }
  explicit constexpr operator double() const { return static_cast<double>(value_); }

  friend constexpr bounded operator+(const bounded& a, const bounded& b) {
    if (b.value_ == 0 && b.base_ == 0 && b.terms_ <= 1) return a;
    if (a.value_ == 0 && a.base_ == 0 && a.terms_ <= 1) return b;
    bounded sum(a.value_ + b.value_, a.base_ + b.base_);
    sum.size_ = a.size_ + b.size_;
    sum.terms_ = a.terms_ + b.terms_;
    return sum;
  }
  friend constexpr bounded operator-(const bounded& a) {
    bounded r = a;
    r.value_ = -a.value_;
    return r;
  }
  friend constexpr bounded operator-(const bounded& a, const bounded& b) { return a + -b; }
  friend constexpr bounded operator*(const bounded& a, const bounded& b) {
    const long double v = a.value_ * b.value_;
    return {v, times(a.value_, b.error()) + times(b.value_, a.error()) + rounded(v)};
  }
  friend constexpr bounded operator/(const bounded& a, const bounded& b) {
    const long double v = a.value_ / b.value_, size = magnitude(b.value_), error = b.error();
    if (error == infinity) return {v, magnitude(v) + least};  // b may be infinite
    return {v, a.error() / size + times(v, error / size) + 2 * rounded(v)};
  }
  constexpr bounded& operator+=(const bounded& b) { return *this = *this + b; }
  constexpr bounded& operator-=(const bounded& b) { return *this = *this - b; }
  constexpr bounded& operator*=(const bounded& b) { return *this = *this * b; }
  constexpr bounded& operator/=(const bounded& b) { return *this = *this / b; }
  friend constexpr bool operator==(const bounded& a, const bounded& b) { return a.value_ == b.value_; }
  friend constexpr auto operator<=>(const bounded& a, const bounded& b) { return a.value_ <=> b.value_; }

  friend bounded exp(const bounded& x) {
    const long double v = std::exp(x.value_);
    if (v >= static_cast<long double>((std::numeric_limits<Of>::max)())) return {v, infinity};
    return {v, times(v, std::expm1((std::min)(x.error(), 100.0L)) + function_error) +
                   2 * static_cast<long double>((std::numeric_limits<Of>::min)())};
  }
  friend bounded log(const bounded& x) {
    const long double v = std::log(x.value_);
    return {v, x.error() / magnitude(x.value_) + function_error * magnitude(v)};
  }
  friend bounded sqrt(const bounded& x) {
    const long double v = std::sqrt(x.value_), error = x.error();
    // Near 0 the tangent is no bound: sqrt(x + e) <= sqrt(x) + sqrt(e).
    return {v, (error == 0 ? 0 : (std::min)(error / (2 * v), std::sqrt(error))) + 2 * rounded(v)};
  }
  friend bounded atan2(const bounded& y, const bounded& x) {
    const long double v = std::atan2(y.value_, x.value_), squares = x.value_ * x.value_ + y.value_ * y.value_;
    const long double moved = times(x.value_, y.error()) + times(y.value_, x.error());
    return {v, (moved == 0 || squares == infinity ? 0 : (std::min)(moved / squares, 4.0L)) + function_error * magnitude(v)};
  }

 private:
  static constexpr long double infinity = std::numeric_limits<long double>::infinity();
  static constexpr long double magnitude(long double x) { return x < 0 ? -x : x; }
  static constexpr long double times(long double factor, long double error) {
    return error == 0 ? 0 : magnitude(factor) * error;
  }
  static constexpr long double rounded(long double x) { return epsilon / 2 * magnitude(x) + least; }
  static constexpr long double rounding(long double x) {
    if (!(magnitude(x) <= static_cast<long double>((std::numeric_limits<Of>::max)()))) return 0;  // infinite, or NaN
    return static_cast<long double>(static_cast<Of>(x)) == x ? 0 : rounded(x);
  }

  long double value_ = 0, size_ = 0, base_ = 0;  // size: sum of |terms|; base: errors of the terms
  long double terms_ = 1;
};

/// Whole passes in bounded numbers.
template <class Of>
struct bounded_precision : uniform_precision<bounded<Of>> {};

}  // namespace parity

/// Maxima, by which softmax is shifted, drop out of its result, and so do their errors.
template <class Of>
struct real_of<parity::bounded<Of>> {
  using type = long double;
};

GYRE_END
