// A Catch2 matcher for reports. The only header of the harness that needs Catch2, version 2 or 3:
//   CHECK_THAT(parity::compare_call<operation::copy>(left, right, {}, x, y), parity::agrees());
#pragma once

#if __has_include(<catch2/catch.hpp>)
#include <catch2/catch.hpp>
#else
#include <catch2/catch_tostring.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#endif

#include <string>

#include <gyre/parity/report.hpp>

GYRE_BEGIN
namespace parity {
namespace detail {

#if __has_include(<catch2/catch.hpp>)
template <class T>
using matcher_base = Catch::MatcherBase<T>;
#else
template <class T>
using matcher_base = Catch::Matchers::MatcherBase<T>;
#endif

class agrees_matcher : public matcher_base<report> {
 public:
  bool match(const report& r) const override { return r.passed(); }
  std::string describe() const override { return "agrees on both backends"; }
};

class fails_matcher : public matcher_base<report> {
 public:
  explicit fails_matcher(fault what, side whose) : what_(what), whose_(whose) {}
  bool match(const report& r) const override {
    for (const finding& f : r.findings)
      if (f.what == what_ && f.whose == whose_) return true;
    return false;
  }
  std::string describe() const override {
    return "shows that the " + std::string(name_of(whose_)) + " side " + std::string(name_of(what_));
  }

 private:
  fault what_;
  side whose_;
};

}  // namespace detail

/// Matches a report without findings.
inline detail::agrees_matcher agrees() { return {}; }
/// Matches a report with this finding among others.
inline detail::fails_matcher fails(fault what, side whose = side::right) { return detail::fails_matcher(what, whose); }

}  // namespace parity
GYRE_END
