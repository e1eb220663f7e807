// Attention with scores so large that their rounding exceeds the range of the exponential: weights are still 0 and 1.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>

#include "support.hpp"
#include "support/compare.hpp"

namespace gyre_test {
namespace {

using gyre::attention_shape, gyre::cpu, gyre::reference;

template <class T>
bool finite(const grid<T>& x) {
  for (index i = 0; i < x.read().rows; ++i)
    for (index j = 0; j < x.read().cols; ++j)
      if (!std::isfinite(x[i][j])) return false;
  return true;
}

}  // namespace

TEMPLATE_TEST_CASE("attention of very large scores is finite, as the reference's", "", float, double) {
  using T = TestType;
  constexpr index width = 32, heads = 2;
  const attention_shape shape{heads, heads, width, 1 / std::sqrt(static_cast<double>(width))};
  const double sizes[] = {1e3, 4e4, 1e6, sizeof(T) == 4 ? 1e8 : 1e14};
  for (const double size : sizes)
    for (const index n : {8, 40, 300}) {  // few and many columns at a time
      CAPTURE(size, n);
      const auto layout = ragged({n});
      const auto q = random_grid<T>(n, heads * width, 1, size), k = random_grid<T>(n, heads * width, 2, size),
                 v = random_grid<T>(n, heads * width, 3), d_o = random_grid<T>(n, heads * width, 4);
      grid<T> o(n, heads * width), lse(n, heads, 0), dq(n, heads * width), dk(n, heads * width), dv(n, heads * width);
      cpu b(1);
      b.attention(q.read(), k.read(), v.read(), layout, shape, o.view(), lse.data());
      CHECK(finite(o));
      CHECK(finite(lse));
      // No weight is larger than 1, so no output leaves the range of the values.
      bool inside = true;
      for (index j = 0; j < heads * width; ++j) {
        T low = v[0][j], high = v[0][j];
        for (index i = 0; i < n; ++i) {
          low = std::min(low, v[i][j]), high = std::max(high, v[i][j]);
          const T slack = 4 * std::max(std::abs(low), std::abs(high)) * std::numeric_limits<T>::epsilon();
          inside = inside && o[i][j] >= low - slack && o[i][j] <= high + slack;
        }
      }
      CHECK(inside);
      b.attention_backward(q.read(), k.read(), v.read(), o.read(), static_cast<const T*>(lse.data()), d_o.read(), layout, shape,
                           dq.view(), dk.view(), dv.view(), static_cast<T*>(nullptr));
      CHECK((finite(dq) && finite(dk) && finite(dv)));
    }
}

}  // namespace gyre_test
