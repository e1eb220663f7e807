// Trials of operations on two backends: drawn, compared, and made smaller where they fail.
#pragma once

#include <functional>
#include <iomanip>
#include <ostream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gyre/parity/compare.hpp>
#include <gyre/parity/settings.hpp>

GYRE_BEGIN
namespace parity {

/// The trials of one operation for one scalar type.
struct check {
  operation of = operation::count;
  std::string type;
  std::span<const dimension> dimensions;
  std::function<report(const trial&)> run;

  std::string_view name() const { return operation_names[static_cast<std::size_t>(of)]; }
};

/// What the trials of one operation showed.
struct outcome {
  operation of = operation::count;
  std::string type;
  index trials = 0, elements = 0;
  element worst;   // over all trials
  report failure;  // of the smallest trial that fails; subject is empty if none does
  trial smallest;

  bool passed() const { return failure.subject.empty(); }
};

struct suite_options {
  std::uint64_t seed = 1;
  index trials = 12;                     // of every operation
  std::string program = "./run parity";  // what a report tells the user to start
  bool shrinks = true;                   // whether a smaller trial that fails too is looked for
};

template <class T>
constexpr std::string_view type_name() {
  return sizeof(T) == 2 ? "bf16" : sizeof(T) == 4 ? "float" : "double";
}

/// One trial.
template <operation Op, class T, class L, class R>
report run_trial(L& left, R& right, const trial& t) {
  bench<T> b(t);
  const auto arguments = setting<Op>::arguments(b);
  const placement where{t[gap.name], t[offset.name]};
  report r = std::apply([&](const auto&... a) { return compare_call<Op>(left, right, where, a...); }, arguments);
  r.trial = t.text();
  return r;
}

template <operation Op, class T, class L, class R>
check check_of(L& left, R& right) {
  return {Op, std::string(type_name<T>()), setting<Op>::dimensions,
          [&left, &right](const trial& t) { return run_trial<Op, T>(left, right, t); }};
}

namespace detail {

/// Updates act on masters, which are not in bf16.
template <operation Op, class T>
concept has_trials = (std::is_arithmetic_v<T> || Op < operation::squared_norm) && requires {
  setting<Op>::dimensions;
};

template <class T, std::size_t First, class L, class R, std::size_t... Op>
std::vector<check> checks_of(L& left, R& right, std::index_sequence<Op...>) {
  std::vector<check> all;
  const auto add = [&]<std::size_t N>() {
    if constexpr (has_trials<static_cast<operation>(N), T>) all.push_back(check_of<static_cast<operation>(N), T>(left, right));
  };
  (add.template operator()<First + Op>(), ...);
  return all;
}

}  // namespace detail

/// The trials of every operation for T, float, double or bfloat16 (then with statistics and gradients in float), or of those from `First` to the one before `Last`; backends must outlive them.
template <class T, operation First = operation{}, operation Last = operation::count, class L, class R>
std::vector<check> all_checks(L& left, R& right) {
  constexpr auto first = static_cast<std::size_t>(First);
  return detail::checks_of<T, first>(left, right, std::make_index_sequence<static_cast<std::size_t>(Last) - first>());
}

/// Draws trials, runs them, and shrinks the first that fails.
inline outcome run_check(const check& c, const suite_options& options = {}) {
  outcome o{c.of, c.type, 0, 0, {}, {}, {}};
  for (index n = 0; n < options.trials && o.passed(); ++n) {
    const trial t = draw_trial(c.of, c.type, c.dimensions, options.seed, n);
    const report r = c.run(t);
    ++o.trials;
    o.elements += r.elements;
    if (r.worst.row >= 0 && (o.worst.row < 0 || r.worst.excess > o.worst.excess)) o.worst = r.worst;
    if (r.passed()) continue;
    // The same kind of failure: another one would be another fault.
    const fault kind = r.findings.front().what;
    const auto fails = [&](const trial& less) {
      const std::vector<finding> found = c.run(less).findings;
      return std::any_of(found.begin(), found.end(), [&](const finding& f) { return f.what == kind; });
    };
    o.smallest = options.shrinks ? shrink(t, c.dimensions, fails) : t;
    o.failure = options.shrinks ? c.run(o.smallest) : r;
    if (o.failure.passed()) o.failure = r, o.smallest = t;  // a fault that comes and goes
    o.failure.command = options.program + " " + o.smallest.text();
  }
  return o;
}

/// Operations of the contract without trials.
inline std::vector<std::string_view> missing(std::span<const outcome> all) {
  std::set<operation> seen;
  for (const outcome& o : all) seen.insert(o.of);
  std::vector<std::string_view> names;
  for (std::size_t n = 0; n < operation_names.size(); ++n)
    if (!seen.contains(static_cast<operation>(n))) names.push_back(operation_names[n]);
  return names;
}

/// A line for every operation of the contract and scalar type: trials, elements, the worst error, its tolerance and their ratio.
/// Operations without trials have a line that says so if all are meant to have some.
inline void write_table(std::ostream& out, std::span<const outcome> all, bool every_operation = true) {
  out << "| operation | type | trials | elements | worst error | its tolerance | of it | "
         "|\n|---|---|--:|--:|--:|--:|--:|---|\n";
  for (std::size_t n = 0; n < operation_names.size(); ++n) {
    bool found = false;
    for (const outcome& o : all) {
      if (o.of != static_cast<operation>(n)) continue;
      found = true;
      std::ostringstream line;
      line << std::setprecision(2);
      const long double error = (std::max)(std::fabs(o.worst.left - o.worst.exact), std::fabs(o.worst.right - o.worst.exact));
      line << "| " << operation_names[n] << " | " << o.type << " | " << o.trials << " | " << o.elements << " | "
           << (o.worst.excess > 0 ? error : 0) << " | " << (o.worst.excess > 0 ? o.worst.tolerance : 0) << " | "
           << o.worst.excess << " | " << (o.passed() ? "passed" : "FAILED") << " |\n";
      out << line.str();
    }
    if (!found && every_operation) out << "| " << operation_names[n] << " | | 0 | 0 | | | | MISSING |\n";
  }
}

}  // namespace parity
GYRE_END
