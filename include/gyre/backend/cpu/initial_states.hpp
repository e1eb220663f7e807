// Random initial states of the `cpu` backend.
#pragma once

#include <span>

#include <gyre/backend/cpu/split.hpp>
#include <gyre/core/layout.hpp>
#include <gyre/core/random.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

template <class T>
void random_normal(thread_pool& pool, matrix_view<T> y, const batch_layout& layout, state_key key, double sigma,
                   bool truncated) {
  constexpr index cost = 8;  // of one number
  const random_stream stream(key.of, purpose::initial_state);
  for (const sequence_span& s : layout.sequences())
    for_rows(pool, s.count, cost * y.cols, [&](index first, index count) {
      for (index i = first; i < first + count; ++i) {
        const std::span<T> row(y[s.begin + i], static_cast<std::size_t>(y.cols));
        const counter at{static_cast<std::uint32_t>(key.step), static_cast<std::uint32_t>(s.key),
                         static_cast<std::uint32_t>(s.past + i), 0};
        if (truncated)
          stream.fill_truncated_normal(row, at, sigma);
        else
          stream.fill_normal(row, at, sigma);
      }
    });
}

}  // namespace detail

GYRE_END
