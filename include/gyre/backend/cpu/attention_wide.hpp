// Attention of many columns at once: training and prefill.
#pragma once

#include <limits>

#include <gyre/backend/cpu/attention_columns.hpp>
#include <gyre/backend/cpu/product.hpp>

GYRE_BEGIN

namespace detail {

/// Scores of one vector of columns become weights, in place: `s` (keys, stride), of which `shown` keys are seen by any column;
/// lane i sees limits[i] of them. `top`: the running maximum of the raw scores; returns the sum of the weights and how the
/// sums of earlier blocks change.
template <class T>
struct softmax_change {
  simd<T> sum, rescale;
};
template <class T>
softmax_change<T> softmax_columns(T* s, index shown, const T* limits, bool masked, T* top, simd<T> scale) {
  constexpr index stride = attention_tile<T>::stride, width = simd<T>::width;
  const simd<T> before = simd<T>::load(top), nothing = simd<T>::broadcast(-std::numeric_limits<T>::infinity());
  simd<T> now = before;
  if (masked) {
    const simd<T> limit = simd<T>::load(limits);
    for (index j = 0; j < shown; ++j) {
      const simd<T> x = where_below(simd<T>::broadcast(static_cast<T>(j)), limit, simd<T>::load(s + j * stride), nothing);
      x.store(s + j * stride);
      now = maximum(x, now);
    }
  } else {
    for (index j = 0; j < shown; ++j) now = maximum(simd<T>::load(s + j * stride), now);
  }
  now.store(top);
  // As many sums as a vector has lanes, key j in number j mod width: the sums that lanes hold when keys lie along a vector.
  simd<T> sums[simd<T>::width];
  for (index i = 0; i < width; ++i) sums[i] = simd<T>::zero();
  for (index j = 0; j < shown; ++j) {
    // Not s * scale - top * scale: the rounding of so large a number may be anything.
    const simd<T> p = exp((simd<T>::load(s + j * stride) - now) * scale);
    p.store(s + j * stride);
    sums[j % width] = sums[j % width] + p;
  }
  for (index half = width / 2; half > 0; half /= 2)
    for (index i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
  return {sums[0], exp((before - now) * scale)};  // exactly 1 where the maximum stays
}

/// Attention of up to attention_tile::columns columns. Keys: read(first, count) gives keys of the sequence in order.
template <class T>
struct wide_attention {
  using tiles = attention_tile<T>;
  T *q, *v, *s, *o, *top, *total, *limits;

  wide_attention(index width, scratch_pieces<T>& scratch)
      : q(scratch.take(width * tiles::columns)),
        v(scratch.take(tiles::keys * tiles::padded(width))),
        s(scratch.take(tiles::keys * tiles::stride)),
        o(scratch.take(tiles::stride * tiles::padded(width))),
        top(scratch.take(tiles::columns)),
        total(scratch.take(tiles::columns)),
        limits(scratch.take(tiles::columns)) {}

  void run(const attention_columns<T>& c, head_keys<T>& keys) {
    pack_columns(q, c.count, c.width, c.query(0), c.q.stride, c.group);
    const index panels = round_up(c.count, tiles::panel) / tiles::panel, end = c.limit(c.count - 1);
    for (index x = 0; x < tiles::columns; ++x) top[x] = -std::numeric_limits<T>::infinity();
    // Columns of the last strip that are in no panel: multiplied, though their results are dropped.
    for (index j = 0; j < tiles::keys; ++j)
      for (index x = panels * tiles::panel; x < round_up(c.count, tiles::rows); ++x) s[j * tiles::stride + x] = T(0);
    for (index first = 0; first < end; first += tiles::keys) {
      const index shown = (std::min)(tiles::keys, end - first);
      const key_block<T> block = keys.read(first, shown);
      // Rows of several heads lie far apart and would push each other out of the first-level cache.
      pack_rows<int{tiles::panel}>(v, tiles::keys, block.values, 0, shown);
      for (index p = 0; p < panels; ++p) score_panel(c, block.keys, p, first, shown);
      weigh(c, first, shown);
    }
    for (index x = 0; x < c.count; ++x) c.finish(x, o + x * tiles::padded(c.width), top[x], total[x]);
  }

 private:
  // The weights of one panel of columns, for those of `shown` keys that any of them sees.
  void score_panel(const attention_columns<T>& c, matrix_view<const T> keys, index p, index first, index shown) {
    const index x = p * tiles::panel, last = (std::min)(x + tiles::panel, c.count) - 1;
    const index seen = (std::max)(index{0}, (std::min)(shown, c.limit(last) - first));
    multiply_panels<T>({s + x, seen, tiles::panel, tiles::stride}, keys.slice(0, seen), q + x * c.width, tiles::panel, 0,
                       false);
    const bool masked = c.limit(x) - first < seen;
    for (index i = x; i < x + tiles::panel; ++i)
      limits[i] = static_cast<T>((std::min)(tiles::keys, (std::max)(index{0}, c.limit((std::min)(i, last)) - first)));
    for (index i = x; i < x + tiles::panel; i += tiles::width) {
      const softmax_change<T> change = softmax_columns(s + i, seen, limits + i, masked, top + i, simd<T>::broadcast(c.scale));
      if (first == 0) {
        change.sum.store(total + i);
      } else {
        fma(simd<T>::load(total + i), change.rescale, change.sum).store(total + i);
        rescale(c, i, change.rescale);
      }
    }
  }

  // The rows of o that belong to columns x .. x + width - 1.
  void rescale(const attention_columns<T>& c, index x, simd<T> factors) {
    T lanes[simd<T>::width];
    factors.store(lanes);
    const index padded = tiles::padded(c.width);
    for (index i = 0; i < tiles::width; ++i)
      if (lanes[i] != T(1)) {
        const simd<T> factor = simd<T>::broadcast(lanes[i]);
        T* row = o + (x + i) * padded;
        for (index k = 0; k < padded; k += tiles::width) (factor * simd<T>::load(row + k)).store(row + k);
      }
  }

  // o += weights^T values.
  void weigh(const attention_columns<T>& c, index first, index shown) {
    const index padded = tiles::padded(c.width), packed = tiles::panel * tiles::keys;
    for (index x = 0; x < c.count; x += tiles::rows) {
      const index all = (std::max)(index{0}, (std::min)(shown, c.limit(x) - first));  // keys that the whole strip sees
      if (all > 0) multiply_turned<T>({o + x * padded, tiles::rows, padded}, s + x, tiles::stride, all, v, packed, first > 0);
      for (index i = x + 1; i < (std::min)(x + tiles::rows, c.count); ++i)
        if (const index more = (std::min)(shown, c.limit(i) - first) - all; more > 0)
          multiply_row(o + i * padded, padded, more, s + all * tiles::stride + i, tiles::stride, v + all * tiles::panel,
                       tiles::panel, packed, true);
    }
  }
};

}  // namespace detail

GYRE_END
