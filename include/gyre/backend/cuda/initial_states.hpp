// Random initial states of the `cuda` backend.
#pragma once

#include <cmath>
#include <cstdint>

#include <gyre/backend/cuda/kernels/random_normal.cuh>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

template <class Backend>
struct cuda_initial_states {
  template <class T>
  void random_normal(matrix_view<T> y, const batch_layout& rows, state_key key, double sigma, bool truncated) {
    require(sigma >= 0 && std::isfinite(sigma), "random_normal: sigma is ", sigma, "; it must be finite and not negative");
    const auto tiles = static_cast<unsigned>((y.cols + random_normal_tile - 1) / random_normal_tile);
    simt::launch(random_normal_pairs<T>, dim3(static_cast<unsigned>(y.rows) * tiles), random_normal_threads, 0,
                 device().stream(), y, device().stage(rows.sequences()), static_cast<index>(rows.sequences().size()),
                 random_stream(key.of, purpose::initial_state), static_cast<std::uint32_t>(key.step), sigma, truncated, tiles);
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }
};

}  // namespace detail

GYRE_END
