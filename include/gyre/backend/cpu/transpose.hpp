// Transposition of small blocks.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

#include <gyre/backend/cpu/simd_math.hpp>

GYRE_BEGIN

namespace detail {

/// Transposes `rows` rows of 16 bytes each. Rows i and i + per_lane share a vector of two 16-byte lanes (where vectors have
/// two): nothing crosses from lane to lane, which is what processors do fastest.
template <class T>
struct turned_block {
  static constexpr int per_lane = 16 / static_cast<int>(sizeof(T)), lanes = simd_bytes >= 32 ? 2 : 1, rows = per_lane * lanes;

  /// to[k * stride + i] = row[i][at + k] for i < rows, k < per_lane.
  GYRE_INLINE static void run(const T* const* row, index at, T* to, index stride) {
#if !defined(GYRE_SCALAR_KERNELS)
    const auto store = [&](int k, vector v) GYRE_INLINE_LAMBDA { std::memcpy(to + k * stride, &v, sizeof v); };
    const vector a = load(row, at, indices{}), b = load(row + 1, at, indices{});
    if constexpr (per_lane == 2) {
      store(0, in_lanes<0, 2>(a, b, indices{}));
      store(1, in_lanes<1, 3>(a, b, indices{}));
    } else {
      const vector c = load(row + 2, at, indices{}), d = load(row + 3, at, indices{});
      const vector ab = in_lanes<0, 4, 1, 5>(a, b, indices{}), ab2 = in_lanes<2, 6, 3, 7>(a, b, indices{});
      const vector cd = in_lanes<0, 4, 1, 5>(c, d, indices{}), cd2 = in_lanes<2, 6, 3, 7>(c, d, indices{});
      store(0, in_lanes<0, 1, 4, 5>(ab, cd, indices{}));
      store(1, in_lanes<2, 3, 6, 7>(ab, cd, indices{}));
      store(2, in_lanes<0, 1, 4, 5>(ab2, cd2, indices{}));
      store(3, in_lanes<2, 3, 6, 7>(ab2, cd2, indices{}));
    }
#else
    for (int i = 0; i < rows; ++i)
      for (int k = 0; k < per_lane; ++k) to[k * stride + i] = row[i][at + k];
#endif
  }

#if !defined(GYRE_SCALAR_KERNELS)
 private:
  using lane [[gnu::vector_size(16)]] = T;
  using vector[[gnu::vector_size(simd_bytes >= 32 ? 32 : 16)]] = T;
  using indices = std::make_integer_sequence<int, rows>;

  GYRE_INLINE static lane load_lane(const T* from) {
    lane v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  template <int... I>
  GYRE_INLINE static vector load(const T* const* row, index at, std::integer_sequence<int, I...> all) {
    if constexpr (lanes == 1)
      return load_lane(row[0] + at);
    else
      return shuffled_lanes(load_lane(row[0] + at), load_lane(row[per_lane] + at), all);
  }
  // In every lane: scalar n of a for n < per_lane, otherwise scalar n - per_lane of b.
  template <int... N, int... I>
  GYRE_INLINE static vector in_lanes(vector a, vector b, std::integer_sequence<int, I...>) {
    constexpr int n[] = {N...};
    return shuffled_lanes(a, b,
                          std::integer_sequence<int, (I / per_lane * per_lane + n[I % per_lane] % per_lane +
                                                      n[I % per_lane] / per_lane * rows)...>());
  }
#endif
};

}  // namespace detail

GYRE_END
