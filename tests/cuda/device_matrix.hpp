// Operands in device memory that ends where they end, for bf16 too.
#pragma once

#include <cstddef>
#include <cstdint>

#include <gyre/backend/cuda/kernels/device.cuh>

namespace gyre_test {

inline double wide(double x) { return x; }
inline double wide(float x) { return x; }
inline double wide(gyre::bfloat16 x) { return static_cast<float>(x); }

/// What a result's scalar adds to an error that was computed in compute_t.
template <class T>
constexpr double rounding_of_result = std::is_same_v<T, gyre::bfloat16> ? 1.0 / 256 : 0;

/// A number from -1 to 1 that depends on its place alone.
template <class T>
T number(gyre::index i, gyre::index j) {
  std::uint64_t mixed = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(j) + 1;
  mixed = (mixed ^ mixed >> 31) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ mixed >> 29) * 0x94d049bb133111ebu;
  using wider = gyre::detail::compute_t<T>;
  return gyre::detail::narrow<T>(static_cast<wider>(static_cast<double>(mixed >> 40) / 8388608.0 - 1));
}

/// A matrix in device memory of its own, which begins `shift` scalars before the first element and ends with the last.
template <class T>
struct device_matrix {
  gyre::simt::device_array<T> memory;
  gyre::matrix_view<T> view;

  device_matrix(gyre::simt::machine& m, gyre::index rows, gyre::index cols, gyre::index stride, gyre::index shift,
                const char* name)
      : memory(m.allocate<T>(static_cast<std::size_t>(rows == 0 ? 0 : shift + (rows - 1) * stride + cols), name)),
        view(memory.data() + shift, rows, cols, stride) {}
  gyre::matrix_view<const T> read() const { return view; }
  /// With the number of every place; `salt` makes them others.
  void fill(gyre::index salt) const {
    for (gyre::index i = 0; i < view.rows; ++i)
      for (gyre::index j = 0; j < view.cols; ++j) view[i][j] = number<T>(i + 1000 * salt, j);
  }
};

}  // namespace gyre_test
