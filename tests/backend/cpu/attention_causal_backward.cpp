// The gradient of sequence attention, to the bit: rows that have no part in a gradient cannot change it, though they be NaN.
// [own_unit]
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>

#include "support.hpp"
#include "support/compare.hpp"

namespace gyre_test {  // at global scope POSIX has an `index` of its own
namespace {

using gyre::attention_shape;
using gyre::batch_layout;
using gyre::cpu;
using gyre::reference;

struct heads_case {
  index heads, kv_heads, width;
};

enum operand { q, o, lse, d_o, k, v, operand_count };
enum gradient { dq, dk, dv };
constexpr const char* operand_names[] = {"q", "o", "lse", "d_o", "k", "v"};

// Around the edges of register tiles (6 and 14 rows), vectors, panels (8 to 32) and blocks of 128 rows.
constexpr index rows_of_interest[] = {0, 1, 5, 6, 13, 14, 27, 32, 48, 63, 95, 96, 126, 127, 128, 129, 141, 199};

template <class T>
using operands = std::vector<grid<T>>;

template <class T, class Device>
std::vector<grid<T>> gradients(Device& b, const operands<T>& x, attention_shape shape) {
  const index rows = x[q].read().rows;
  std::vector<grid<T>> d;
  for (const operand like : {q, k, v}) d.emplace_back(rows, x[like].read().cols);
  const grid<T> workspace(1, Device::attention_backward_workspace(rows, shape));
  batch_layout layout;
  layout.add(rows, 0, 0);
  b.attention_backward(x[q].read(), x[k].read(), x[v].read(), x[o].read(), static_cast<const T*>(x[lse].data()), x[d_o].read(),
                       layout, shape, d[dq].view(), d[dk].view(), d[dv].view(), workspace.data());
  return d;
}

/// Rows of `g` that differ though row i of operand x does not touch them.
template <class T>
std::string spread(operand x, index i, const std::vector<grid<T>>& got, const std::vector<grid<T>>& clean) {
  const index rows = clean[dq].read().rows;
  const auto same = [&](gradient g, index first, index last) {
    if (first >= last) return std::string();
    return bit_differences(got[g].read().slice(first, last - first), clean[g].read().slice(first, last - first));
  };
  if (x == k || x == v)  // a key: queries from it on see it, and no other key's gradient does
    return same(dq, 0, i) + same(dk, 0, i) + same(dk, i + 1, rows) + same(dv, 0, i) + same(dv, i + 1, rows);
  return same(dq, 0, i) + same(dq, i + 1, rows) + same(dk, i + 1, rows) + same(dv, i + 1, rows);
}

template <class T, class Device>
void check(Device& b, heads_case h, index rows) {
  using limits = std::numeric_limits<T>;
  const attention_shape shape{h.heads, h.kv_heads, h.width, 1 / std::sqrt(static_cast<double>(h.width))};
  const index wide = h.heads * h.width, narrow = h.kv_heads * h.width;
  operands<T> x;
  const index widths[operand_count] = {wide, wide, h.heads, wide, narrow, narrow};
  for (int n = 0; n < operand_count; ++n)
    x.push_back(random_grid<T>(rows, widths[n], static_cast<std::uint64_t>(n), 1, n == lse ? 0 : 3));
  for (index i = 0; i < rows; ++i)
    for (index head = 0; head < h.heads; ++head) x[lse][i][head] = std::log(T(i + 1)) + T(2);
  const auto clean = gradients(b, x, shape);
  for (int n = 0; n < operand_count; ++n)
    for (const index i : rows_of_interest) {
      if (i >= rows) break;
      auto bad = x;
      for (index j = 0; j < widths[n]; ++j)
        bad[static_cast<std::size_t>(n)][i][j] = j % 2 ? limits::infinity() : limits::quiet_NaN();
      CAPTURE(h.heads, h.kv_heads, h.width, rows, operand_names[n], i);
      const auto got = gradients(b, bad, shape);
      CHECK(spread(static_cast<operand>(n), i, got, clean) == "");
      CHECK(!std::isfinite(got[n == v ? dq : n == d_o ? dv : dk][i][0]));  // and what does depend on it shows it
    }
}

}  // namespace

TEMPLATE_TEST_CASE("a row that is not finite reaches the gradients that depend on it and no others", "", float, double) {
  cpu b(1);
  // One head, several, grouped queries; widths of one vector, one panel, odd ones.
  for (const heads_case h : {heads_case{1, 1, 2}, {2, 2, 64}, {5, 1, 40}, {4, 2, 33}})
    for (const index rows : {7, 30, 200}) check<TestType>(b, h, rows);
  reference plain;
  check<TestType>(plain, {4, 2, 6}, 30);
}

}  // namespace gyre_test
