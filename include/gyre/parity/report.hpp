// What a comparison found.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <gyre/ops/operations.hpp>
#include <gyre/parity/tensor.hpp>

GYRE_BEGIN
namespace parity {

enum class side : unsigned char { left, right, both };
enum class fault : unsigned char {
  tolerance,       // an element is off by more than it may be
  old_content,     // a result depends on what an output, a workspace or a guard held before: not everything was written
  not_repeatable,  // the same call gave other bits
  outside,         // something beside an output was written
  input,           // an input was written
  thrown
};
inline constexpr std::string_view name_of(side s) { return s == side::left ? "left" : s == side::right ? "right" : "both"; }
inline constexpr std::string_view name_of(fault f) {
  constexpr std::string_view names[] = {"beyond tolerance", "depends on old content", "not repeatable",
                                        "wrote outside",    "wrote into an input",    "threw"};
  return names[static_cast<std::size_t>(f)];
}

struct finding {
  fault what = fault::tolerance;
  side whose = side::left;
  std::string text;
};

/// One element of an output on both sides.
struct element {
  std::string output;
  index row = -1, col = -1;
  long double left = 0, right = 0, exact = 0, tolerance = 0;
  double excess = 0;  // the larger of both sides' errors, over the tolerance; 0 with an error of 0
};

/// Comparison of one call, or of the calls of a layer or step.
struct report {
  std::string subject;  // an operation, or what was compared
  std::string trial;    // sizes and seed, or empty
  std::string command;  // repeats it
  element worst;        // the element with the largest error over its tolerance
  index elements = 0;   // compared
  bool repeatable_left = true, repeatable_right = true;
  std::vector<finding> findings;

  bool passed() const { return findings.empty(); }
};

namespace detail {

/// Error over tolerance: 0 without an error, infinite where there may be none.
inline double excess(long double got, long double exact, long double tolerance) {
  // Beside numbers that are not finite: which of them it is depends on the order of operations.
  if (!std::isfinite(exact)) return std::isfinite(got) ? std::numeric_limits<double>::infinity() : 0;
  if (got == exact) return 0;
  const long double ratio = std::fabs(got - exact) / tolerance;
  return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : static_cast<double>(ratio);
}

inline std::string element_text(const element& e) {
  std::ostringstream text;
  text.precision(12);
  text << e.output << " (" << e.row << ", " << e.col << "): left " << e.left << ", right " << e.right << ", exact " << e.exact
       << ", tolerance ";
  text.precision(3);
  text << e.tolerance << ", error " << e.excess << " of it";
  return text.str();
}

/// Compares outputs of both sides with what they should be, and adds what is wrong to `r`.
inline void compare_values(report& r, const std::vector<tensor>& left, const std::vector<tensor>& right,
                           const std::vector<expectation>& exact) {
  require(left.size() == exact.size() && right.size() == exact.size(), "parity: ", left.size(), ", ", right.size(), " and ",
          exact.size(), " outputs of one call");
  for (std::size_t n = 0; n < exact.size(); ++n) {
    const expectation& e = exact[n];
    require(left[n].size() == e.rows * e.cols && right[n].size() == left[n].size(), "parity: ", e.name, " has ", left[n].size(),
            ", ", right[n].size(), " and ", e.rows * e.cols, " elements");
    r.elements += left[n].size();
    element of[2];
    index beyond[2] = {0, 0};
    for (index i = 0; i < left[n].size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const long double value[2] = {left[n][i], right[n][i]};
      double ratio[2];
      for (int s = 0; s < 2; ++s) ratio[s] = excess(value[s], e.values[at], e.tolerances[at]);
      const element here{e.name,   i / e.cols,   i % e.cols,       value[0],
                         value[1], e.values[at], e.tolerances[at], (std::max)(ratio[0], ratio[1])};
      if (here.excess > r.worst.excess || r.worst.row < 0) r.worst = here;
      for (int s = 0; s < 2; ++s) {
        if (!(ratio[s] > 1)) continue;
        ++beyond[s];
        if (of[s].row < 0 || ratio[s] > of[s].excess) of[s] = here, of[s].excess = ratio[s];
      }
    }
    for (int s = 0; s < 2; ++s)
      if (beyond[s] > 0)
        r.findings.push_back(
            {fault::tolerance, s == 0 ? side::left : side::right,
             std::to_string(beyond[s]) + " of " + std::to_string(left[n].size()) + " elements, worst " + element_text(of[s])});
  }
}

/// The first element whose bits differ, as text; empty if none does.
inline std::string first_difference(const std::vector<tensor>& a, const std::vector<tensor>& b) {
  for (std::size_t n = 0; n < a.size() && n < b.size(); ++n)
    for (index i = 0; i < a[n].size(); ++i)
      if (!a[n].same_bits(i, b[n])) {
        std::ostringstream text;
        text.precision(12);
        text << a[n].name << " (" << i / a[n].cols << ", " << i % a[n].cols << "): " << a[n][i] << ", then " << b[n][i];
        return text.str();
      }
  return {};
}

}  // namespace detail

inline std::ostream& operator<<(std::ostream& out, const report& r) {
  out << r.subject << (r.passed() ? ": passed" : ": FAILED") << ", " << r.elements << " elements";
  if (!r.trial.empty()) out << "; " << r.trial;
  out << '\n';
  if (r.worst.row >= 0) out << "  worst " << detail::element_text(r.worst) << '\n';
  out << "  repeatable: left " << (r.repeatable_left ? "yes" : "no") << ", right " << (r.repeatable_right ? "yes" : "no")
      << '\n';
  for (const finding& f : r.findings) out << "  " << name_of(f.whose) << ' ' << name_of(f.what) << ": " << f.text << '\n';
  if (!r.passed() && !r.command.empty()) out << "  repeat: " << r.command << '\n';
  return out;
}

}  // namespace parity
GYRE_END
