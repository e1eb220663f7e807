// Causality of sequence attention, to the bit: what a query must not see cannot change its result, though it be NaN. [own_unit]
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <span>
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
using gyre::cache_lane;
using gyre::cpu;
using gyre::reference;

struct heads_case {
  index heads, kv_heads, width;
};
// Columns of one task: a head of many queries, several heads of one query, more heads than a task takes.
constexpr heads_case head_cases[] = {{1, 1, 2}, {2, 2, 64}, {5, 1, 40}, {6, 2, 16}, {130, 1, 4}, {3, 3, 33}};

attention_shape shape_of(heads_case h) { return {h.heads, h.kv_heads, h.width, 1 / std::sqrt(static_cast<double>(h.width))}; }

/// Rows [first, last) become NaN, infinite of both signs and huge, one element after the other.
template <class T>
void poison(grid<T>& x, index first, index last) {
  using limits = std::numeric_limits<T>;
  const T bad[] = {limits::quiet_NaN(), limits::infinity(), -limits::infinity(), limits::max()};
  for (index i = first; i < last; ++i)
    for (index j = 0; j < x.read().cols; ++j) x[i][j] = bad[(i + j) % 4];
}

// Around the edges of register tiles (6 and 14 rows), vectors, panels (8 to 32) and blocks of keys (96 and 128).
constexpr index cuts[] = {1, 2, 5, 7, 13, 14, 15, 23, 27, 33, 47, 64, 83, 95, 96, 97, 127, 128, 129, 150, 191, 200, 219};
constexpr index length = 220;

template <class Device, class T>
struct forward_result {
  grid<T> o, lse;
  forward_result(Device& b, const grid<T>& q, const grid<T>& k, const grid<T>& v, heads_case h)
      : o(q.read().rows, h.heads * h.width), lse(q.read().rows, h.heads, 0) {
    batch_layout layout;
    layout.add(q.read().rows, 0, 0);
    b.attention(q.read(), k.read(), v.read(), layout, shape_of(h), o.view(), lse.data());
  }
};

template <class T, class Device>
void check_forward(Device& b, heads_case h, index rows) {
  CAPTURE(h.heads, h.kv_heads, h.width, rows);
  const auto q = random_grid<T>(rows, h.heads * h.width, 1), k = random_grid<T>(rows, h.kv_heads * h.width, 2),
             v = random_grid<T>(rows, h.kv_heads * h.width, 3);
  const forward_result<Device, T> clean(b, q, k, v, h);
  for (const index cut : cuts) {
    if (cut >= rows) break;
    for (const int which : {0, 1, 2}) {
      auto x = which == 0 ? q : which == 1 ? k : v;
      poison(x, cut, rows);
      const forward_result<Device, T> r(b, which == 0 ? x : q, which == 1 ? x : k, which == 2 ? x : v, h);
      CAPTURE(cut, which);
      CHECK(bit_differences(r.o.read().slice(0, cut), clean.o.read().slice(0, cut)) == "");
      CHECK(bit_differences(r.lse.read().slice(0, cut), clean.lse.read().slice(0, cut)) == "");
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("a query's result does not depend on later rows, finite or not", "", float, double) {
  cpu b(1);
  for (const heads_case h : head_cases)
    for (const index rows : {index{2}, index{4}, index{24}, index{30}, length}) check_forward<TestType>(b, h, rows);
  reference plain;
  check_forward<TestType>(plain, {6, 2, 16}, 30);
}

// Pieces of few tokens take the path of decoding, others that of training.
TEMPLATE_TEST_CASE("a piece of a prompt read through the cache does not depend on its later tokens", "", float, double) {
  using T = TestType;
  cpu b(1);
  for (const heads_case h : head_cases)
    for (const index past : {0, 90, 127})
      for (const index count : {2, 3, 8, 24, 60}) {
        const index kv_width = h.kv_heads * h.width, capacity = past + count;
        const auto q = random_grid<T>(count, h.heads * h.width, 1), k = random_grid<T>(capacity, kv_width, 2),
                   v = random_grid<T>(capacity, kv_width, 3);
        batch_layout layout;
        layout.add(count, past, 0);
        const auto run = [&](const grid<T>& keys, const grid<T>& values) {
          std::vector<T> memory;  // all keys, then all values
          for (const grid<T>* x : {&keys, &values})
            for (index j = 0; j < capacity; ++j) memory.insert(memory.end(), (*x)[j], (*x)[j] + kv_width);
          const cache_lane<T> lanes[] = {{memory.data(), capacity}};
          grid<T> o(count, h.heads * h.width);
          b.cached_attention(q.read(), layout, std::span<const cache_lane<T>>(lanes), 0, shape_of(h), 0, o.view());
          return o;
        };
        const grid<T> clean = run(k, v);
        for (const index cut : {index{1}, count / 2, count - 1}) {
          auto bad_k = k, bad_v = v;
          poison(bad_k, past + cut, capacity), poison(bad_v, past + cut, capacity);
          CAPTURE(h.heads, h.kv_heads, h.width, past, count, cut);
          CHECK(bit_differences(run(bad_k, v).read().slice(0, cut), clean.read().slice(0, cut)) == "");
          CHECK(bit_differences(run(k, bad_v).read().slice(0, cut), clean.read().slice(0, cut)) == "");
        }
      }
}

}  // namespace gyre_test
