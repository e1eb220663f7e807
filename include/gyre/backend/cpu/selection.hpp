// The largest of a row's selection scores.
//
// A selection score is scale * x + bias, as one fma, so that equal inputs tie whichever lane they are in; NaN becomes -infinity.
// Ties go to the lower index, so the chosen set does not depend on how it is found.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
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

/// Bit i says whether lane i is at least the value; NaN never is.
template <class T>
GYRE_INLINE std::uint32_t lanes_from(simd<T> x, T value) {
#if GYRE_SIMD_BYTES == 64
  if constexpr (sizeof(T) == 4)
    return _mm512_cmp_ps_mask((__m512)x.v, _mm512_set1_ps(value), _CMP_GE_OQ);
  else
    return _mm512_cmp_pd_mask((__m512d)x.v, _mm512_set1_pd(value), _CMP_GE_OQ);
#elif GYRE_SIMD_BYTES == 32
  if constexpr (sizeof(T) == 4)
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps((__m256)x.v, _mm256_set1_ps(value), _CMP_GE_OQ)));
  else
    return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_cmp_pd((__m256d)x.v, _mm256_set1_pd(value), _CMP_GE_OQ)));
#else
  T lanes[simd<T>::width];
  x.store(lanes);
  std::uint32_t bits = 0;
  for (int i = 0; i < simd<T>::width; ++i) bits |= std::uint32_t{lanes[i] >= value} << i;
  return bits;
#endif
}

/// Finds the largest scores of a row by bisection for the smallest of them: as many passes over the row as it takes to tell it
/// from its neighbours, about a dozen, whatever the number of scores that are chosen.
template <class T>
class selection {
 public:
  /// Scalars of scratch for rows of so many scores.
  static constexpr index scratch(index experts) { return padded(experts) + group; }

  selection(T* memory, index experts)
      : experts_(experts), size_(padded(experts)), scores_(memory), maxima_(memory + padded(experts)) {}

  /// chosen (active), ascending.
  void choose(selection_scores<T> row, index active, std::int32_t* chosen) {
    std::fill(scores_ + experts_ / group * group, scores_ + size_, std::numeric_limits<T>::quiet_NaN());
    each_vector<T>(experts_, [&](index j, auto lanes) GYRE_INLINE_LAMBDA { lanes.store(row.load(j, lanes), scores_ + j); });
    write_maxima();
    const T top = largest_of_group(maxima_);
    integer low = place_of(smallest_in(scores_, size_)) - 1;
    threshold found{top, 0};
    bool searching = true;
    if (size_ >= 8 * group && 2 * active <= group) {
      // What `active` maxima are above, so many scores are above, and hardly more: often none.
      found = search(maxima_, group, active, low, place_of(top));
      low = place_of(found.limit) - (found.equals > 0 ? 1 : 0);
      searching = found.equals > 0 || count_above(scores_, size_, found.limit) != active;
    }
    if (searching) found = search(scores_, size_, active, low, place_of(top));
    for (index j = 0; j < size_; j += group)
      for (std::uint64_t bits = group_from(scores_ + j, found.limit); bits != 0; bits &= bits - 1) {
        const index e = j + std::countr_zero(bits);
        if (scores_[e] > found.limit || found.equals-- > 0) *chosen++ = static_cast<std::int32_t>(e);
      }
  }

 private:
  static constexpr index width = simd<T>::width, group = 4 * width;
  static constexpr index padded(index experts) { return (experts + group - 1) / group * group; }

  // Floating-point numbers are ordered as these integers.
  using integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  static integer flip(integer bits) { return bits < 0 ? bits ^ (std::numeric_limits<integer>::max)() : bits; }
  static integer place_of(T x) { return flip(std::bit_cast<integer>(x)); }
  static T at_place(integer place) { return std::bit_cast<T>(flip(place)); }

  // Chosen are all numbers above the limit, and of those that equal it the first `equals`.
  struct threshold {
    T limit;
    index equals;
  };

  // Of a group's numbers, one lane each; numbers behind the row, NaN, are left out.
  void write_maxima() {
    simd<T> a = simd<T>::broadcast(-std::numeric_limits<T>::infinity()), b = a, c = a, d = a;
    for (const T *x = scores_, *const end = x + size_; x != end; x += group) {
      a = maximum(simd<T>::load(x), a), b = maximum(simd<T>::load(x + width), b);
      c = maximum(simd<T>::load(x + 2 * width), c), d = maximum(simd<T>::load(x + 3 * width), d);
    }
    a.store(maxima_), b.store(maxima_ + width), c.store(maxima_ + 2 * width), d.store(maxima_ + 3 * width);
  }
  static T largest_of_group(const T* x) {
    return largest(maximum(maximum(simd<T>::load(x), simd<T>::load(x + width)),
                           maximum(simd<T>::load(x + 2 * width), simd<T>::load(x + 3 * width))));
  }
  static T smallest_in(const T* x, index size) {
    simd<T> least = simd<T>::broadcast(std::numeric_limits<T>::infinity());
    for (const T* const end = x + size; x != end; x += width) {
      const simd<T> here = simd<T>::load(x);
      least = where_below(here, least, here, least);
    }
    return fold_lanes<width / 2>(least, [](simd<T> u, simd<T> v) { return where_below(u, v, u, v); });
  }

  // The numbers of a group that are at least the limit, one bit each.
  static std::uint64_t group_from(const T* x, T limit) {
    std::uint64_t bits = 0;
    for (int i = 0; i < 4; ++i) bits |= std::uint64_t{lanes_from(simd<T>::load(x + i * width), limit)} << (i * width);
    return bits;
  }
  static index count_above(const T* x, index size, T limit) {
    integer lanes[std::size_t{width}] = {};
#if !defined(GYRE_SCALAR_KERNELS)
    using integers [[gnu::vector_size(GYRE_SIMD_BYTES)]] = integer;
    const simd<T> limits = simd<T>::broadcast(limit);
    integers a = {}, b = a, c = a, d = a;  // true is -1
    for (const T* const end = x + size; x != end; x += group) {
      a -= (integers)(simd<T>::load(x).v > limits.v), b -= (integers)(simd<T>::load(x + width).v > limits.v);
      c -= (integers)(simd<T>::load(x + 2 * width).v > limits.v), d -= (integers)(simd<T>::load(x + 3 * width).v > limits.v);
    }
    const integers all = (a + b) + (c + d);
    std::memcpy(lanes, &all, sizeof all);
#else
    for (index j = 0; j < size; ++j) lanes[j % width] += x[j] > limit ? 1 : 0;
#endif
    integer count = 0;
    for (const integer lane : lanes) count += lane;
    return static_cast<index>(count);
  }

  // Between the scores at two places: halfway in their value at first, which separates them soonest, then in their place, which
  // ends however they lie. Never `low` or `high`.
  static integer between(integer low, integer high, int round) {
    constexpr int by_value = 16;
    if (round < by_value) {
      const integer place = place_of(at_place(low) / 2 + at_place(high) / 2);
      if (place > low && place < high) return place;
    }
    using positive = std::make_unsigned_t<integer>;
    return static_cast<integer>(static_cast<positive>(low) + (static_cast<positive>(high) - static_cast<positive>(low)) / 2);
  }

  // For the `active` largest of x. At least as many are above the score at `low`, fewer above that at `high`. Searches the
  // largest score above which there are fewer; ends early at a limit that has exactly `active` above it.
  static threshold search(const T* x, index size, index active, integer low, integer high) {
    for (int round = 0; high - 1 > low; ++round) {
      const integer middle = between(low, high, round);
      const index above = count_above(x, size, at_place(middle));
      if (above == active) return {at_place(middle), 0};
      (above > active ? low : high) = middle;
    }
    const T limit = at_place(high);
    return {limit, active - count_above(x, size, limit)};
  }

  index experts_, size_;
  T *scores_, *maxima_;  // the row's scores, padded to groups; the largest of each lane of the groups
};

}  // namespace detail

GYRE_END
