// Gates: what happens at one pack of elements.
#pragma once

#include <cmath>

#include <gyre/backend/cuda/kernels/elementwise.cuh>

GYRE_BEGIN

namespace detail {

template <class C>
GYRE_DEVICE C exponential(C x) {
  return std::exp(x);
}

/// a = silu(gate) * up, h = [gate | up].
template <class T>
struct gated_silu_elements {
  matrix_view<const T> h;
  matrix_view<T> a;
  template <int Width>
  GYRE_DEVICE void operator()(index i, index j) const {
    using C = compute_t<T>;
    const pack<T, Width> gates = load_pack<Width>(h[i] + j), ups = load_pack<Width>(h[i] + a.cols + j);
    pack<T, Width> to;
    GYRE_UNROLL for (int v = 0; v < Width; ++v) {
      const C gate = widen(gates.at[v]);
      to.at[v] = narrow<T>(gate / (C(1) + exponential(-gate)) * widen(ups.at[v]));
    }
    store_pack(a[i] + j, to);
  }
};
/// dh = [d gate | d up].
template <class T>
struct gated_silu_gradients {
  matrix_view<const T> h, da;
  matrix_view<T> dh;
  template <int Width>
  GYRE_DEVICE void operator()(index i, index j) const {
    using C = compute_t<T>;
    const pack<T, Width> gates = load_pack<Width>(h[i] + j), ups = load_pack<Width>(h[i] + da.cols + j),
                         gradients = load_pack<Width>(da[i] + j);
    pack<T, Width> d_gates, d_ups;
    GYRE_UNROLL for (int v = 0; v < Width; ++v) {
      const C gate = widen(gates.at[v]), up = widen(ups.at[v]), d = widen(gradients.at[v]);
      const C sigma = C(1) / (C(1) + exponential(-gate));
      d_gates.at[v] = narrow<T>(d * up * sigma * (C(1) + gate * (C(1) - sigma)));
      d_ups.at[v] = narrow<T>(d * gate * sigma);
    }
    store_pack(dh[i] + j, d_gates);
    store_pack(dh[i] + da.cols + j, d_ups);
  }
};

}  // namespace detail

GYRE_END
