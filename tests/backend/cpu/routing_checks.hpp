// What the tests of routing share: sizes, and one call of route.
#pragma once

#include <cstdint>
#include <vector>

#include "support.hpp"

namespace gyre_test {

using exact = long double;
using integers = std::vector<std::int32_t>;

struct sizes {
  index rows, experts, active;
};
// Few and many active, all, one, one of one, rows that end within a vector, rows long enough for a first search, no rows.
inline constexpr sizes routing_cases[] = {{0, 8, 2},    {1, 1, 1},     {5, 7, 1},     {33, 64, 4},   {9, 64, 64},
                                          {3, 257, 20}, {40, 256, 16}, {40, 256, 17}, {2, 4096, 64}, {2, 4096, 4},
                                          {3, 1000, 1}, {3, 1000, 8},  {3, 1000, 9},  {7, 100, 99},  {300, 16, 2}};

template <class T>
struct routed {
  integers chosen;
  std::vector<T> logits, gates;
  explicit routed(const sizes& s)
      : chosen(static_cast<std::size_t>(s.rows * s.active), -1), logits(chosen.size()), gates(chosen.size()) {}
};
template <class B, class T>
routed<T> route_with(B b, matrix_view<const T> scores, const T* bias, double scale, index active) {
  routed<T> r({scores.rows, scores.cols, active});
  b.route(scores, bias, scale, active, r.chosen.data(), r.logits.data(), r.gates.data());
  return r;
}
template <class T>
matrix_view<const T> as_matrix(const std::vector<T>& x, index rows) {
  const index cols = rows > 0 ? static_cast<index>(x.size()) / rows : 0;
  return {x.data(), rows, cols};
}
template <class T>
std::vector<exact> widened(const std::vector<T>& x) {
  return std::vector<exact>(x.begin(), x.end());
}

}  // namespace gyre_test
