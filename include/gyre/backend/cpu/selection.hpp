// The largest of a row's selection scores.
//
// A selection score is scale * x + bias, as one fma, so that equal inputs tie whichever lane they are in; NaN becomes -infinity.
// Ties go to the lower index, so the chosen set does not depend on how it is found.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <gyre/backend/cpu/simd_math.hpp>

GYRE_BEGIN

namespace detail {

/// The scores of one row.
template <class T>
struct selection_scores {
  const T *x, *bias;  // bias null: none
  T scale;

  template <class Lanes>
  GYRE_INLINE simd<T> load(index j, Lanes lanes) const {
    const simd<T> scores = lanes.load(x + j), factor = simd<T>::broadcast(scale);
    const simd<T> sum = bias != nullptr ? fma(factor, scores, lanes.load(bias + j)) : factor * scores;
    return maximum(sum, simd<T>::broadcast(-std::numeric_limits<T>::infinity()));
  }
};

/// Bit i says whether lane i is above the limit.
template <class T>
GYRE_INLINE std::uint32_t lanes_above(simd<T> x, T limit) {
#if GYRE_SIMD_BYTES == 64
  if constexpr (sizeof(T) == 4)
    return _mm512_cmp_ps_mask((__m512)x.v, _mm512_set1_ps(limit), _CMP_GT_OQ);
  else
    return _mm512_cmp_pd_mask((__m512d)x.v, _mm512_set1_pd(limit), _CMP_GT_OQ);
#elif GYRE_SIMD_BYTES == 32
  if constexpr (sizeof(T) == 4)
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps((__m256)x.v, _mm256_set1_ps(limit), _CMP_GT_OQ)));
  else
    return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_cmp_pd((__m256d)x.v, _mm256_set1_pd(limit), _CMP_GT_OQ)));
#else
  T lanes[simd<T>::width];
  x.store(lanes);
  std::uint32_t above = 0;
  for (int i = 0; i < simd<T>::width; ++i) above |= std::uint32_t{lanes[i] > limit} << i;
  return above;
#endif
}

/// Up to this many are kept in a sorted list while the row is read once; more are found by bisection.
inline constexpr index few_active = 16;

/// The best so far, best first; among equals the lower index, which came first.
template <class T>
struct best_few {
  T score[few_active];
  std::int32_t expert[few_active];
  index count = 0;

  void insert(T s, index e, index most) {
    if (count == most && !(s > score[most - 1])) return;
    index at = count < most ? count++ : most - 1;
    for (; at > 0 && s > score[at - 1]; --at) score[at] = score[at - 1], expert[at] = expert[at - 1];
    score[at] = s, expert[at] = static_cast<std::int32_t>(e);
  }
};

template <class T>
void select_few(selection_scores<T> row, index experts, index active, std::int32_t* chosen) {
  best_few<T> best;
  each_vector<T>(experts, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
    const simd<T> scores = row.load(j, lanes);
    std::uint32_t open = ~std::uint32_t{0};
    if (best.count == active) open = lanes_above(scores, best.score[active - 1]);
    open &= (std::uint32_t{1} << lanes.count) - 1;
    if (open == 0) return;
    T values[simd<T>::width];
    scores.store(values);
    for (; open != 0; open &= open - 1) {
      const int lane = std::countr_zero(open);
      best.insert(values[lane], j + lane, active);
    }
  });
  std::copy_n(best.expert, active, chosen);
  std::sort(chosen, chosen + active);
}

/// Scratch numbers that select_many needs.
constexpr index selection_stride = 16;
constexpr index selection_scratch(index experts) {
  return (experts + selection_stride - 1) / selection_stride * selection_stride;
}

template <class T>
using ordered = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// How many of `count` numbers, a multiple of selection_stride, are at least `limit`.
template <class I>
index count_from(const I* numbers, index count, I limit) {
  I lanes[selection_stride] = {};
  for (index j = 0; j < count; j += selection_stride)
    for (index i = 0; i < selection_stride; ++i) lanes[i] += numbers[j + i] >= limit ? I{1} : I{0};
  I total = 0;
  for (const I lane : lanes) total += lane;
  return static_cast<index>(total);
}

/// Bisects for the smallest chosen score among the integers that are ordered as the floating-point numbers are.
template <class T>
void select_many(selection_scores<T> row, index experts, index active, ordered<T>* numbers, std::int32_t* chosen) {
  using integer = ordered<T>;
  constexpr integer most = (std::numeric_limits<integer>::max)(), least = (std::numeric_limits<integer>::min)();
  const auto number = [](T score) {
    const integer bits = std::bit_cast<integer>(score + T(0));  // -0 becomes 0
    return bits < 0 ? bits ^ most : bits;
  };
  each_vector<T>(experts, [&](index j, auto lanes) GYRE_INLINE_LAMBDA {
    T values[simd<T>::width];
    row.load(j, lanes).store(values);
    for (index i = 0; i < lanes.count; ++i) numbers[j + i] = number(values[i]);
  });
  const index padded = selection_scratch(experts);
  std::fill(numbers + experts, numbers + padded, least);

  // At least `active` are from `low` on, fewer from `high` on.
  constexpr T infinity = std::numeric_limits<T>::infinity();
  integer low = number(-infinity), high = number(infinity) + 1;
  using width = std::make_unsigned_t<integer>;
  for (index from_low = experts; from_low != active;) {
    const width apart = static_cast<width>(high) - static_cast<width>(low);
    if (apart == 1) break;
    const integer middle = static_cast<integer>(static_cast<width>(low) + apart / 2);
    const index from_middle = count_from(numbers, padded, middle);
    if (from_middle >= active)
      low = middle, from_low = from_middle;
    else
      high = middle;
  }
  index equals = active - count_from(numbers, padded, static_cast<integer>(low + 1));  // how many of those at low are chosen
  for (index e = 0; e < experts; ++e)
    if (numbers[e] > low || (numbers[e] == low && equals-- > 0)) *chosen++ = static_cast<std::int32_t>(e);
}

}  // namespace detail

GYRE_END
