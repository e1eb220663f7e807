// What the changed copies of the kernels that faults.py writes call: every fault is there at once, and the environment chooses one.
//
//   GYRE_FAULT          its number; none if it is not set
//   GYRE_FAULT_REACHED  a file that gets a line for every place of a fault that ran: its number, and the operation that it ran for
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <type_traits>

#include <gyre/ops/operations.hpp>

// The kernels' accesses are watched; these are not theirs.
#define GYRE_UNWATCHED __attribute__((no_sanitize("thread", "address", "undefined", "alignment")))

namespace gyre_mutants {

inline constexpr int most_faults = 1024, other_way = 512;
inline const int chosen = [] {
  const char* const number = std::getenv("GYRE_FAULT");
  return number != nullptr ? std::atoi(number) : -1;
}();

/// Which operations each place ran for; the last column is of what tests launch themselves.
struct record {
  static constexpr int none = static_cast<int>(gyre::operation::count);
  std::array<std::array<bool, none + 1>, most_faults> reached{};
  int now = none;

  ~record() {
    const char* const path = std::getenv("GYRE_FAULT_REACHED");
    std::FILE* const to = path != nullptr ? std::fopen(path, "w") : nullptr;
    if (to == nullptr) return;
    for (int n = 0; n < most_faults; ++n)
      for (int o = 0; o <= none; ++o)
        if (reached[static_cast<std::size_t>(n)][static_cast<std::size_t>(o)])
          std::fprintf(to, "%d %s\n", n, o == none ? "-" : gyre::operation_names[static_cast<std::size_t>(o)].data());
    std::fclose(to);
  }
};
inline record all;

/// The outermost operation that a call of the host is part of.
class running {
 public:
  GYRE_UNWATCHED explicit running(gyre::operation o) : before_(all.now) {
    if (before_ == record::none) all.now = static_cast<int>(o);
  }
  GYRE_UNWATCHED ~running() { all.now = before_; }

 private:
  int before_;
};

GYRE_UNWATCHED inline bool is_chosen(int n) {
  all.reached[static_cast<std::size_t>(n)][static_cast<std::size_t>(all.now)] = true;
  return n == chosen;
}
/// In constants nothing is chosen.
GYRE_UNWATCHED constexpr bool fault(int n) { return !std::is_constant_evaluated() && is_chosen(n); }

template <class M>
GYRE_UNWATCHED constexpr M mask(int n, M lanes) {
  return fault(n) ? static_cast<M>(lanes >> 1) : lanes;
}
template <class C>
GYRE_UNWATCHED constexpr C scale(int n, C factor) {
  return fault(n) ? C(1) : factor;
}
/// Groups of copies that may still be under way: one more.
GYRE_UNWATCHED constexpr unsigned long wait(int n, unsigned long groups) { return groups + fault(n); }

/// a < bound(n) < b is a < b, or a <= b, or with fault n + other_way a + 1 < b; the others likewise. It has the precedence of what
/// it stands for, so that it can be written without knowing where the operands begin and end.
struct bound {
  int number;
  GYRE_UNWATCHED constexpr explicit bound(int n) : number(n) {}
};
template <class A>
struct half_compared {
  A left;
  int number;
};
#define GYRE_BOUND(op, other, more_left, more_right)                                  \
  template <class A>                                                                  \
  GYRE_UNWATCHED constexpr half_compared<A> operator op(A left, bound b) {            \
    return {left, b.number};                                                          \
  }                                                                                   \
  template <class A, class B>                                                         \
  GYRE_UNWATCHED constexpr bool operator op(half_compared<A> a, B right) {            \
    if (fault(a.number)) return a.left other right;                                   \
    if (fault(a.number + other_way)) return a.left + more_left op right + more_right; \
    return a.left op right;                                                           \
  }
GYRE_BOUND(<, <=, 1, 0)
GYRE_BOUND(<=, <, 0, 1)
GYRE_BOUND(>, >=, 0, 1)
GYRE_BOUND(>=, >, 1, 0)
#undef GYRE_BOUND

}  // namespace gyre_mutants
