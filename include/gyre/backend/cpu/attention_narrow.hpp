// Attention of a few columns: decoding.
#pragma once

#include <limits>

#include <gyre/backend/cpu/attention_columns.hpp>
#include <gyre/backend/cpu/product.hpp>

GYRE_BEGIN

namespace detail {

/// Does what wide_attention does for up to `columns` columns: keys lie along the vectors. Same bits.
template <class T>
struct narrow_attention {
  using tiles = attention_tile<T>;
  static constexpr index columns = 24;  // from there on wide_attention is faster
  T *k, *v, *s, *o;

  narrow_attention(index width, scratch_pieces<T>& scratch)
      : k(scratch.take(round_up(tiles::keys, tiles::panel) * width)),
        v(scratch.take(tiles::keys * tiles::panel)),
        s(scratch.take(tiles::keys * columns)),
        o(scratch.take(tiles::padded(width) * columns)) {}

  void run(const attention_columns<T>& c, head_keys<T>& keys) {
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const index end = c.limit(c.count - 1), padded = tiles::padded(c.width);
    T top[std::size_t{columns}], total[std::size_t{columns}];
    std::fill_n(top, columns, lowest);
    for (index first = 0; first < end; first += tiles::keys) {
      const index shown = (std::min)(tiles::keys, end - first);
      const key_block<T> block = keys.read(first, shown);
      pack_columns(k, shown, c.width, block.keys.data, block.keys.stride);
      score(c, shown);
      for (index x = 0; x < c.count; ++x) {
        const index seen = (std::min)(shown, c.limit(x) - first);
        if (seen > 0) soften(s + x * tiles::keys, o + x * padded, seen, shown, c.scale, first > 0, padded, top[x], total[x]);
      }
      weigh(c, block.values, first);
    }
    for (index x = 0; x < c.count; ++x) c.finish(x, o + x * padded, top[x], total[x]);
  }

 private:
  void score(const attention_columns<T>& c, index shown) {
    const bool by_query = c.group == 1;  // consecutive columns are consecutive
                                         // queries, otherwise heads of one query
    const index rows = by_query ? c.count : c.group, stride = by_query ? c.q.stride : c.width;
    for (index x = 0; x < c.count; x += rows)
      multiply_panels<T>({s + x * tiles::keys, rows, round_up(shown, tiles::panel), tiles::keys},
                         {c.query(x), rows, c.width, stride}, k, tiles::panel, tiles::panel * c.width, false);
  }

  // softmax_columns for one column whose scores lie along `x`.
  static void soften(T* x, T* o, index seen, index shown, T factor, bool more, index padded, T& top, T& total) {
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const index end = round_up(shown, tiles::width);
    for (index j = seen; j < end; ++j) x[j] = lowest;
    simd<T> now = simd<T>::broadcast(top);
    for (index j = 0; j < end; j += tiles::width) now = maximum(simd<T>::load(x + j), now);
    const T before = top;
    top = largest(now);
    const simd<T> scale = simd<T>::broadcast(factor), highest = simd<T>::broadcast(top);
    simd<T> sums = simd<T>::zero();
    for (index j = 0; j < end; j += tiles::width) {
      const simd<T> p = exp((simd<T>::load(x + j) - highest) * scale);
      p.store(x + j);
      sums = sums + p;
    }
    if (!more) {
      total = sum(sums);
      return;
    }
    const simd<T> rescale = exp((simd<T>::broadcast(before) - highest) * scale);
    total = fma(simd<T>::broadcast(total), rescale, simd<T>::broadcast(sum(sums)))[0];
    if (rescale[0] != T(1))
      for (index c = 0; c < padded; c += tiles::width) (rescale * simd<T>::load(o + c)).store(o + c);
  }

  // o += weights values; values where they lie, but for a last panel that is not whole.
  void weigh(const attention_columns<T>& c, matrix_view<const T> values, index first) {
    const bool more = first > 0;
    const index seen = (std::max)(index{0}, (std::min)(values.rows, c.limit(0) - first));  // keys that all columns see
    const matrix_view<const T> weights(s, c.count, seen, tiles::keys);
    const matrix_view<T> sums(o, c.count, tiles::padded(c.width));
    const index whole = c.width / tiles::panel * tiles::panel;
    if (whole < c.width) pack_rows<int{tiles::panel}>(v, tiles::keys, values.columns(whole, c.width - whole), 0, values.rows);
    if (seen > 0) {
      index done = 0;
      if (c.count == 1 && whole >= 2 * tiles::panel && whole < 4 * tiles::panel) {
        tile<T, 1, 2, tile_source::direct>(tile_of<T>(seen, s, 0, values.data, values.stride, tiles::panel, o, 0, more));
        done = 2 * tiles::panel;
      }
      multiply_panels(sums.columns(done, whole - done), weights, values.data + done, values.stride, tiles::panel, more);
      if (whole < c.width) multiply_panels<T>(sums.columns(whole, tiles::panel), weights, v, tiles::panel, 0, more);
    }
    for (index x = c.group; x < c.count; ++x)
      if (const index others = (std::min)(values.rows, c.limit(x) - first) - seen; others > 0) {
        const T* const a = s + x * tiles::keys + seen;
        multiply_row(sums[x], whole, others, a, 1, values[seen], values.stride, tiles::panel, true);
        if (whole < c.width)
          multiply_row(sums[x] + whole, tiles::panel, others, a, 1, v + seen * tiles::panel, tiles::panel, 0, true);
      }
  }
};

}  // namespace detail

GYRE_END
