// Reference updates of parameters: the optimisers' inner loops, one scalar at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <gyre/core/types.hpp>
#include <gyre/ops/updates.hpp>

GYRE_BEGIN

namespace detail {

/// The larger one; NaN if x is. A name of its own, for scalars that know more of it than which is larger.
template <class T>
T at_least(const T& x, const T& least) {
  return (std::max)(x, least);
}

struct reference_updates {
  template <class T>
  double squared_norm(const T* x, index count) {
    double sum = 0;
    for (index i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    return sum;
  }
  template <class T>
  void combine(std::type_identity_t<T> a, const T* x, std::type_identity_t<T> b, T* y, index count) {
    for (index i = 0; i < count; ++i) y[i] = b == T(0) ? a * x[i] : a * x[i] + b * y[i];
  }
  template <class T>
  void adamw_update(T* w, const T* g, T* m, T* v, index count, const adamw_numbers& n) {
    using std::sqrt;
    const T scale(static_cast<T>(n.gradient_scale)), correction(static_cast<T>(1 / n.v_correction));
    for (index i = 0; i < count; ++i) {
      const T gradient = scale * g[i];
      m[i] = static_cast<T>(n.beta1) * m[i] + static_cast<T>(1 - n.beta1) * gradient;
      v[i] = static_cast<T>(n.beta2) * v[i] + static_cast<T>(1 - n.beta2) * gradient * gradient;
      w[i] -=
          static_cast<T>(n.shrink) * w[i] + static_cast<T>(n.rate) * m[i] / (sqrt(v[i] * correction) + static_cast<T>(n.eps));
    }
  }
  template <class T>
  double clipped_moments(const T* g, T* m, T* v, index count, const moment_numbers& n) {
    const T scale(static_cast<T>(n.gradient_scale));
    double sum = 0;
    for (index i = 0; i < count; ++i) {
      const T gradient = scale * g[i];
      m[i] = static_cast<T>(n.beta1) * m[i] + static_cast<T>(1 - n.beta1) * gradient;
      v[i] = at_least(static_cast<T>(n.beta2) * v[i] + static_cast<T>(1 - n.beta2) * gradient * gradient,
                      static_cast<T>(n.v_floor));
      sum += static_cast<double>(gradient) * static_cast<double>(gradient) / static_cast<double>(v[i]);
    }
    return sum;
  }
  template <class T>
  void atan2_update(T* w, const T* m, const T* v, index count, const atan2_numbers& n) {
    using std::atan2, std::sqrt;
    const T correction(static_cast<T>(1 / n.v_correction));
    for (index i = 0; i < count; ++i)
      w[i] -= static_cast<T>(n.shrink) * w[i] + static_cast<T>(n.rate) * atan2(m[i], sqrt(v[i] * correction));
  }
};

}  // namespace detail

GYRE_END
