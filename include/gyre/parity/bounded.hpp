// A scalar that knows how far a backend may be off: it runs through the reference as any other, so that operations, layers and
// training steps get their tolerance from the same rules. docs/parity.md has the derivation.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <type_traits>

#include <gyre/core/bfloat16.hpp>
#include <gyre/core/precision.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN
namespace parity {

/// A value in long double, and how far the result of a backend with scalars `Of` may be from it, to first order in its epsilon:
/// a bound, and a deviation. The bound is the worst case. The deviation takes roundings as independent: squares add up, as far as
/// each could go, so that it does not grow as the worst case does from layer to layer.
/// A number that additions made remembers its terms, for another backend may add them in any order and in any pieces:
///   sum of n > 2 terms     errors of the terms, and (2 n - 1) eps sum|terms|: with a product's rounding the contract's 2 n eps;
///                          in the deviation sqrt(n) eps sum|terms|
///   sum of 2 terms         errors of the terms, and eps |sum|: there is only one order
///   product                errors of the operands times the other operand and times each other, and eps / 2 of the result; the
///                          deviation of the product of two errors is their deviations' product, times sqrt(3) if they are one and
///                          the same normal number (its fourth moment), which is taken for every product
///   quotient, sqrt         error of the operands times the derivatives, and eps of the result: some hardware's are not the nearest
///   exp, log, atan2        the same with 4 eps
///   perhaps rounded        error of the number, and eps / 2 of the coarser type of the number with its error
/// An exponential that overflows may be infinite, and one below twice the smallest normal number 0.
template <class Of>
class bounded {
 public:
  static constexpr double epsilon = static_cast<compute_t<Of>>(std::numeric_limits<Of>::epsilon());
  // Rounding of a result that is denormal.
  static constexpr double least = static_cast<compute_t<Of>>(std::numeric_limits<Of>::denorm_min());
  static constexpr double function_error = 4 * epsilon;

  constexpr bounded() = default;
  /// A constant: exact if `Of` has it, rounded otherwise.
  template <class A>
  requires std::is_arithmetic_v<A>
  constexpr bounded(A x) : bounded(static_cast<long double>(x), rounding(static_cast<long double>(x))) {}
  /// A number that a backend has.
  constexpr bounded(Of x) requires(!std::is_arithmetic_v<Of>) : bounded(static_cast<long double>(static_cast<float>(x)), 0) {}
  constexpr bounded(long double value, long double error) : bounded(value, narrow(error), narrow(error) * narrow(error)) {}
  /// Of another scalar type: rounded if it is the finer one.
  template <class Other>
  explicit constexpr bounded(const bounded<Other>& x) : bounded(x.value(), x.error(), x.variance()) {
    const double own = bounded<Other>::epsilon < epsilon ? rounded(value_) : 0;
    base_ += own, variance_ += own * own;
  }

  constexpr long double value() const { return value_; }
  constexpr long double real() const { return value_; }
  /// Bound of the error of a backend's result.
  constexpr double error() const {
    const double sum = terms_ <= 1 ? 0 : terms_ <= 2 ? epsilon * magnitude(value_) : (2 * terms_ - 1) * epsilon * size_;
    return (base_ + sum) * (1 + 64 * epsilon);  // the rest: what is neglected beyond the first order
  }
  /// Square of its deviation.
  constexpr double variance() const {
    const double sum = terms_ <= 1 ? 0 : epsilon * (terms_ <= 2 ? magnitude(value_) : size_);
    return variance_ + (terms_ <= 2 ? 1 : terms_) * sum * sum;
  }
  explicit constexpr operator double() const { return static_cast<double>(value_); }

  /// Where a backend may round it to `Coarser`, or not: further off by at most one rounding of what the backend has.
  template <class Coarser>
  constexpr bounded perhaps_rounded() const {
    const auto own = [&](double error) {
      return bounded<Coarser>::epsilon / 2 * (magnitude(value_) + error) + bounded<Coarser>::least;
    };
    const double bound = error(), likely = own(std::sqrt(variance()));
    return {value_, at_most(bound + own(bound), *this, *this), at_most(variance() + likely * likely, *this, *this)};
  }

  friend constexpr bounded operator+(const bounded& a, const bounded& b) {
    if (b.value_ == 0 && b.base_ == 0 && b.terms_ <= 1) return a;
    if (a.value_ == 0 && a.base_ == 0 && a.terms_ <= 1) return b;
    bounded sum(a.value_ + b.value_, a.base_ + b.base_, a.variance_ + b.variance_);
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
    bounded product = carried(v, a, narrow(b.value_), b, narrow(a.value_), rounded(v));
    // What matters where a number is smaller than its error: of second order, as in the square of a gradient near 0.
    product.base_ = at_most(product.base_ + a.error() * b.error(), a, b);
    product.variance_ = at_most(product.variance_ + 3 * a.variance() * b.variance(), a, b);
    return product;
  }
  friend constexpr bounded operator/(const bounded& a, const bounded& b) {
    const long double v = a.value_ / b.value_;
    if (b.error() == infinity) return {v, magnitude(v) + least};  // b may be infinite
    return carried(v, a, narrow(1 / b.value_), b, narrow(v / b.value_), 2 * rounded(v));
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
    const double own = function_error * magnitude(v) + 2 * static_cast<double>((std::numeric_limits<Of>::min)());
    const auto moved = [&](double error) { return times(narrow(v), std::expm1((std::min)(error, 100.0))); };
    const double likely = moved(std::sqrt(x.variance()));
    return {v, at_most(moved(x.error()) + own, x, x), at_most(likely * likely + own * own, x, x)};
  }
  friend bounded log(const bounded& x) {
    const long double v = std::log(x.value_);
    return carried(v, x, narrow(1 / x.value_), {}, 0, function_error * magnitude(v));
  }
  friend bounded sqrt(const bounded& x) {
    const long double v = std::sqrt(x.value_);
    const double own = 2 * rounded(v);
    // Near 0 the tangent is no bound: sqrt(x + e) <= sqrt(x) + sqrt(e).
    const auto moved = [&](double e) { return e == 0 ? 0 : (std::min)(e / (2 * narrow(v)), std::sqrt(e)); };
    const double likely = moved(std::sqrt(x.variance()));
    return {v, moved(x.error()) + own, likely * likely + own * own};
  }
  friend bounded atan2(const bounded& y, const bounded& x) {
    const long double v = std::atan2(y.value_, x.value_), squares = x.value_ * x.value_ + y.value_ * y.value_;
    const double own = function_error * magnitude(v);
    if (squares == infinity) return {v, own};
    if (squares == 0) return {v, (x.error() + y.error() == 0 ? 0 : 4) + own};  // any angle
    bounded angle = carried(v, y, narrow(x.value_ / squares), x, narrow(y.value_ / squares), own);
    constexpr double turn = 6.2831853071795864769;  // no angle is further off; nor are four deviations
    angle.base_ = (std::min)(angle.base_, turn);
    angle.variance_ = (std::min)(angle.variance_, turn * turn / 16);
    return angle;
  }
  /// The larger one, as a backend may see it: x counts, unless it is below by more than its error.
  friend bounded at_least(const bounded& x, const bounded& limit) {
    const bounded& larger = x.value_ < limit.value_ ? limit : x;
    const long double below = limit.value_ - x.value_;
    if (x.error() < below || 16 * x.variance() < below * below) return larger;
    return {larger.value_, (std::max)(x.error(), limit.error()), (std::max)(x.variance(), limit.variance())};
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr double meaningless = 1e200;  // a bound that says nothing need not become infinite
  constexpr bounded(long double value, double error, double variance)
      : value_(value), size_(magnitude(value)), base_(error), variance_(variance) {}

  // What follows from numbers that may be infinite stays so.
  static constexpr double at_most(double error, const bounded& a, const bounded& b) {
    return error > meaningless && a.base_ != infinity && b.base_ != infinity ? meaningless : error;
  }
  static constexpr double narrow(long double x) { return static_cast<double>(x); }
  static constexpr double magnitude(long double x) { return static_cast<double>(x < 0 ? -x : x); }
  static constexpr double times(double factor, double error) { return error == 0 ? 0 : magnitude(factor) * error; }
  static constexpr double rounded(long double x) { return epsilon / 2 * magnitude(x) + least; }
  static constexpr double rounding(long double x) {
    if (!(magnitude(x) <= static_cast<long double>((std::numeric_limits<Of>::max)()))) return 0;  // infinite, or NaN
    return static_cast<long double>(static_cast<compute_t<Of>>(static_cast<Of>(x))) == x ? 0 : rounded(x);
  }
  /// f(a, b) by its derivatives, with an error of its own.
  static constexpr bounded carried(long double value, const bounded& a, double by_a, const bounded& b, double by_b,
                                   double own) {
    return {value, at_most(times(by_a, a.error()) + times(by_b, b.error()) + own, a, b),
            at_most(times(by_a * by_a, a.variance()) + times(by_b * by_b, b.variance()) + own * own, a, b)};
  }

  long double value_ = 0;
  double size_ = 0, base_ = 0, variance_ = 0;  // size: sum of |terms|; base, variance: of the terms
  double terms_ = 1;
};

/// Whole passes in bounded numbers.
template <class Of>
struct bounded_precision : uniform_precision<bounded<Of>> {};
/// Of bf16_mixed.
template <>
struct bounded_precision<bfloat16> {
  using parameter = bounded<bfloat16>;
  using activation = bounded<bfloat16>;
  using gradient = bounded<float>;
  using statistic = bounded<float>;
};

}  // namespace parity

/// As what it stands for is computed: bf16 in fp32, with one rounding at the end.
template <class Of>
struct compute_of<parity::bounded<Of>> {
  using type = parity::bounded<compute_t<Of>>;
};

template <class Of>
struct double_of<parity::bounded<Of>> {
  using type = parity::bounded<double>;
};

/// One rounding more in the bound. Where T is what is computed in, there is none.
template <class Of>
requires(!std::is_same_v<compute_t<Of>, Of>) struct optional_rounding<parity::bounded<Of>> {
  static constexpr parity::bounded<compute_t<Of>> of(const parity::bounded<compute_t<Of>>& x) {
    return x.template perhaps_rounded<Of>();
  }
};

/// Maxima, by which softmax is shifted, drop out of its result, and so do their errors.
template <class Of>
struct real_of<parity::bounded<Of>> {
  using type = long double;
};

GYRE_END
