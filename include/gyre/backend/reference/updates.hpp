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

// D: double, or what stands for it.
struct reference_updates {
  template <class T, class D>
  void squared_norm(const T* x, index count, D* squares) {
    D sum(0);
    for (index i = 0; i < count; ++i) {
      const D each(x[i]);
      sum += each * each;
    }
    squares[0] = sum;
  }
  template <class T, class D>
  void unit(const T* x, const D* squares, T* y, index count) {
    using std::sqrt;
    const D norm = sqrt(squares[0]);
    for (index i = 0; i < count; ++i) y[i] = squares[0] == D(0) ? T(0) : static_cast<T>(D(x[i]) / norm);
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
  void clipped_atan2_update(T* w, const T* g, T* m, T* v, index count, const clipped_atan2_numbers& n) {
    using std::atan2, std::sqrt;
    using D = double_t<T>;
    const T scale(static_cast<T>(n.gradient_scale)), correction(static_cast<T>(1 / n.v_correction));
    D sum(0);
    for (index i = 0; i < count; ++i) {
      const T gradient = scale * g[i];
      m[i] = static_cast<T>(n.beta1) * m[i] + static_cast<T>(1 - n.beta1) * gradient;
      v[i] = at_least(static_cast<T>(n.beta2) * v[i] + static_cast<T>(1 - n.beta2) * gradient * gradient,
                      static_cast<T>(n.v_floor));
      sum += D(gradient) * D(gradient) / D(v[i]);
    }
    const D root = sqrt(sum / D(static_cast<double>(count))), clip = root == root ? at_least(root, D(1)) : D(1);
    const T rate = static_cast<T>(D(n.rate) / clip);
    for (index i = 0; i < count; ++i) w[i] -= static_cast<T>(n.shrink) * w[i] + rate * atan2(m[i], sqrt(v[i] * correction));
  }
};

}  // namespace detail

GYRE_END
