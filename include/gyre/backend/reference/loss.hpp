// Reference cross-entropy and sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <span>

#include <gyre/core/types.hpp>

GYRE_BEGIN

namespace detail {

struct reference_loss {
  template <class T, class S>
  void cross_entropy(matrix_view<T> logits, std::span<const token> targets, std::type_identity_t<S> scale, S* losses,
                     bool gradient) {
    using std::exp, std::log;
    for (index i = 0; i < logits.rows; ++i) {
      T* z = logits[i];
      const token target = targets[static_cast<std::size_t>(i)];
      if (target < 0) {
        losses[i] = S(0);
        if (gradient) std::fill_n(z, logits.cols, T(0));
        continue;
      }
      real_t<S> top = real_part(S(z[0]));
      for (index v = 1; v < logits.cols; ++v) top = (std::max)(top, real_part(S(z[v])));
      S sum(0);
      for (index v = 0; v < logits.cols; ++v) sum += exp(S(z[v]) - S(top));
      const S total = log(sum) + S(top);
      losses[i] = total - S(z[target]);
      if (!gradient) continue;
      for (index v = 0; v < logits.cols; ++v) {
        const S share = scale * exp(S(z[v]) - total);
        z[v] = T(v == target ? share - scale : share);
      }
    }
  }
  template <class S>
  void sum(const S* x, index count, S* total) {
    S all(0);
    for (index i = 0; i < count; ++i) all += x[i];
    total[0] = all;
  }
};

}  // namespace detail

GYRE_END
