// Norms of `cuda` for one type: a file for each, so that none takes long to compile.
#pragma once

#include "trials.hpp"

namespace gyre_test {

template <class T>
void check_norms() {
  using gyre::operation;
  check_operations<T, operation::rms_norm, operation::add_rms_norm, operation::rms_norm_backward, operation::standardise,
                   operation::row_change>();
}

/// Rows that fill a warp's registers, need 128 and 512 threads, and are longer than those keep; then without packs.
template <class T>
void check_norms_of_long_rows() {
  using gyre::index, gyre::operation;
  constexpr index pack = gyre::detail::pack_width<T>, kept = gyre::detail::kept_packs<pack>;
  struct length {
    index cols, offset;
  };
  for (const auto& [cols, offset] :
       {length{32 * kept * pack, 0}, length{32 * kept * pack + pack, 0}, length{128 * kept * pack, 0},
        length{128 * kept * pack + pack, 0}, length{512 * kept * pack + pack, 0}, length{128 * kept + 70, 1},
        length{512 * kept + 1, 1}}) {
    if (gyre::simt::machine::watches_accesses() && cols > 256 * kept * pack) continue;  // the same kernels as one before
    check_trial<T, operation::rms_norm>({{"rows", 3}, {"cols", cols}, {"gain", 1}, {"offset", offset}});
    check_trial<T, operation::add_rms_norm>({{"rows", 2}, {"cols", cols}, {"gain", 1}, {"in_place", 2}, {"offset", offset}});
    // Two partial sums.
    check_trial<T, operation::rms_norm_backward>({{"rows", 9}, {"cols", cols}, {"gain", 1}, {"dgain", 1}, {"offset", offset}});
    check_trial<T, operation::standardise>({{"rows", 2}, {"cols", cols}, {"offset", offset}});
    check_trial<T, operation::row_change>({{"rows", 2}, {"cols", cols}, {"offset", offset}});
  }
  if (gyre::simt::machine::watches_accesses()) return;
  // Partial sums of more than eight rows.
  for (const index offset : {0, 1})
    check_trial<T, operation::rms_norm_backward>({{"rows", 4099}, {"cols", pack}, {"dgain", 1}, {"offset", offset}});
}

/// A gain that begins between two packs, beside rows that do not.
template <class T>
void check_gain_anywhere() {
  using gyre::index;
  constexpr index cols = 40;
  shuffled_cuda device;
  const auto take = [&](index count) {
    return reinterpret_cast<T*>(device.allocate(static_cast<std::size_t>(count) * sizeof(T)));
  };
  T *const x = take(cols), *const gains = take(2 * cols), *const y = take(2 * cols), *const dx = take(2 * cols);
  T *const dgain = take(2 * cols), *const workspace = take(shuffled_cuda::rms_norm_backward_workspace(1, cols));
  T* const rstd = take(1);
  const gyre::matrix_view<const T> row(x, 1, cols);
  for (index j = 0; j < cols; ++j) x[j] = T(j % 7) - T(2.5);
  for (index j = 0; j < 2 * cols; ++j) dx[j] = dgain[j] = 0;
  for (const index shift : {0, 1}) {
    for (index j = 0; j < cols; ++j) gains[shift + j] = T(1) / T(j + 3);
    device.rms_norm(row, gains + shift, 1e-6, {y + shift * cols, 1, cols}, rstd);
    device.rms_norm_backward(row, gains + shift, static_cast<const T*>(rstd), row, {dx + shift * cols, 1, cols},
                             dgain + shift * cols, workspace);
  }
  for (index j = 0; j < cols; ++j) {
    CHECK(y[j] == y[cols + j]);
    CHECK(dx[j] == dx[cols + j]);
    CHECK(dgain[j] == dgain[cols + j]);
  }
  for (T* const memory : {x, gains, y, dx, dgain, workspace, rstd}) device.deallocate(reinterpret_cast<std::byte*>(memory), 0);
}

}  // namespace gyre_test
