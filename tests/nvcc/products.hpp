// Products of gpu_device in every order of storage: checked on a GPU, and on the stand-in for cuBLAS.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include <gyre/backend/cuda.hpp>

namespace gyre_test {  // where `index` is gyre's, not <strings.h>'s

using gyre::index;
using gyre::matrix_view;

/// Memory of the device for `count` numbers, for the host after finish().
template <class T>
class numbers {
 public:
  numbers(gyre::cuda& device, index count)
      : device_(device), bytes_(sizeof(T) * static_cast<std::size_t>(count)), memory_(device.allocate(bytes_)) {}
  ~numbers() { device_.deallocate(memory_, bytes_); }
  numbers(const numbers&) = delete;
  numbers& operator=(const numbers&) = delete;
  T* data() const { return reinterpret_cast<T*>(memory_); }
  T& operator[](index i) const { return data()[i]; }

 private:
  gyre::cuda device_;
  std::size_t bytes_;
  std::byte* memory_;
};

template <class T>
double as_double(T x) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __bfloat162float(x);
  else
    return x;
}
template <class T>
T as(double x) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

/// Small whole numbers: every product and sum is exact in every type.
template <class A, class C>
void check_products(gyre::cuda& device, index m, index n, index k) {
  for (const bool transposed_a : {false, true})
    for (const bool transposed_b : {false, true})
      for (const bool accumulate : {false, true}) {
        const index rows_a = transposed_a ? k : m, cols_a = transposed_a ? m : k, rows_b = transposed_b ? n : k,
                    cols_b = transposed_b ? k : n, gap = 3;
        numbers<A> a(device, rows_a * (cols_a + gap) + 1), b(device, rows_b * (cols_b + gap) + 1);
        numbers<C> c(device, m * (n + gap) + 1);
        const matrix_view<A> av(a.data(), rows_a, cols_a, cols_a + gap), bv(b.data(), rows_b, cols_b, cols_b + gap);
        const matrix_view<C> cv(c.data(), m, n, n + gap);
        for (index i = 0; i < rows_a; ++i)
          for (index j = 0; j < cols_a; ++j) av[i][j] = as<A>(static_cast<double>((i * 7 + j * 3) % 5 - 2));
        for (index i = 0; i < rows_b; ++i)
          for (index j = 0; j < cols_b; ++j) bv[i][j] = as<A>(static_cast<double>((i * 5 + j * 2) % 3 - 1));
        for (index i = 0; i < m * (n + gap); ++i) c[i] = as<C>(accumulate ? 2 : std::nan(""));
        device.device().multiply<A, C>(av, transposed_a, bv, transposed_b, cv, accumulate);
        device.finish();
        index wrong = 0;
        for (index i = 0; i < m; ++i)
          for (index j = 0; j < n; ++j) {
            double sum = accumulate ? 2 : 0;
            for (index l = 0; l < k; ++l)
              sum += as_double(transposed_a ? av[l][i] : av[i][l]) * as_double(transposed_b ? bv[j][l] : bv[l][j]);
            wrong += as_double(cv[i][j]) != sum;
          }
        CAPTURE(m, n, k, transposed_a, transposed_b, accumulate);
        CHECK(wrong == 0);
      }
}

}  // namespace gyre_test
