// Updates of parameters of the `cuda` backend.
#pragma once

#include <type_traits>

#include <gyre/backend/cuda/kernels/sums.cuh>
#include <gyre/backend/cuda/kernels/updates.cuh>

GYRE_BEGIN

namespace detail {

template <class Backend>
struct cuda_updates {
  template <class T>
  void squared_norm(const T* x, index count, double* squares) {
    double* const sums = device().template workspace<double>(sum_chunks<T>(count));
    sum_up<T>(device(), sums, at_pack(x), count, number_term<T, true>{x}, whole_sum{}, squares);
  }
  template <class T>
  void unit(const T* x, const double* squares, T* y, index count) {
    each<T>(at_pack(x) && at_pack(y), count, unit_pack<T>{x, squares, y});
  }
  template <class T>
  void combine(std::type_identity_t<T> a, const T* x, std::type_identity_t<T> b, T* y, index count) {
    each<T>(at_pack(x) && at_pack(y), count, combine_pack<T>{a, x, b, y});
  }
  template <class T>
  void adamw_update(T* w, const T* g, T* m, T* v, index count, const adamw_numbers& numbers) {
    each<T>(at_pack(w) && at_pack(g) && at_pack(m) && at_pack(v), count, adamw_pack<T>(w, g, m, v, numbers));
  }
  template <class T>
  void clipped_atan2_update(T* w, const T* g, T* m, T* v, index count, const clipped_atan2_numbers& numbers) {
    const bool wide = at_pack(m) && at_pack(v);
    const index chunks = sum_chunks<T>(count);
    double *const sums = device().template workspace<double>(chunks + 1), *const rate = sums + chunks;
    sum_up<T>(device(), sums, wide && at_pack(g), count, clipped_moments_term<T>(g, m, v, numbers),
              clipped_rate{numbers.rate, static_cast<double>(count)}, rate);
    each<T>(wide && at_pack(w), count, atan2_pack<T>(w, m, v, rate, numbers));
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }
  template <class T, class Body>
  void each(bool wide, index count, Body body) {
    simt::launch(wide ? for_each_pack<true, T, Body> : for_each_pack<false, T, Body>,
                 blocks_for(count, update_threads * static_cast<unsigned>(pack_width<T>)), update_threads, 0, device().stream(),
                 count, body);
  }
};

}  // namespace detail

GYRE_END
