// Sequence attention of the `cpu` backend, forward: softmax over blocks of keys with a running maximum, so that the scores of a
// sequence never exist at once (Dao et al., "FlashAttention", NeurIPS 2022; Milakov, Gimelshein 2018).
//
// One order of operations for everybody: training, prefill and decoding give a query the same bits.
#pragma once

#include <cmath>
#include <limits>

#include <gyre/backend/cpu/attention_tile.hpp>

GYRE_BEGIN

namespace detail {

/// The columns of one tile: queries from row `row` on, `group` heads of each from `first_head` on.
template <class T>
struct attention_columns {
  matrix_view<const T> q;
  matrix_view<T> o;
  T* lse = nullptr;  // (rows, heads), or null
  index heads = 0, width = 0;
  index row = 0, first_head = 0, group = 1, count = 0;
  index visible = 0;  // keys that the first query sees; each later query sees one more
  T scale{};

  index query_of(index column) const { return row + column / group; }
  index head_of(index column) const { return first_head + column % group; }
  const T* query(index column) const { return q[query_of(column)] + head_of(column) * width; }
  index limit(index column) const { return visible + column / group; }
  /// `x` (width) divided by the sum of its weights.
  void finish(index column, const T* x, T top, T total) const {
    const simd<T> factor = simd<T>::broadcast(T(1) / total);
    T* to = o[query_of(column)] + head_of(column) * width;
    each_vector<T>(width, [&](index c, auto lanes) GYRE_INLINE_LAMBDA { lanes.store(factor * lanes.load(x + c), to + c); });
    if (lse != nullptr) lse[query_of(column) * heads + head_of(column)] = std::log(total) + top * scale;
  }
};

/// Some keys and values of a sequence as the tiles read them: values padded to whole panels.
template <class T>
struct key_block {
  const T *keys, *values;
  index key_stride, value_stride;
};

/// Keys and values in rows at a fixed distance.
template <class T>
class stored_keys {
 public:
  stored_keys(const T* keys, index key_stride, const T* values, index value_stride, index width, scratch_pieces<T>& scratch)
      : keys_(keys), values_(values), key_stride_(key_stride), value_stride_(value_stride), width_(width) {
    padded_ = attention_tile<T>::padded(width);
    if (padded_ != width) copy_ = scratch.take(attention_tile<T>::keys * padded_);
  }
  key_block<T> read(index first, index count) {
    const T *k = keys_ + first * key_stride_, *v = values_ + first * value_stride_;
    if (copy_ == nullptr) return {k, v, key_stride_, value_stride_};
    for (index j = 0; j < count; ++j) {
      std::copy_n(v + j * value_stride_, width_, copy_ + j * padded_);
      std::fill_n(copy_ + j * padded_ + width_, padded_ - width_, T(0));
    }
    return {k, copy_, key_stride_, padded_};
  }

 private:
  const T *keys_, *values_;
  index key_stride_, value_stride_, width_, padded_;
  T* copy_ = nullptr;
};

/// Scores of one vector of columns become weights, in place: `s` (keys, stride), of which `shown` keys are seen by any column;
/// lane i sees limits[i] of them. `top`: the running maximum of the raw scores; returns the sum of the weights and how the sums
/// of earlier blocks change.
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
  const simd<T> shift = simd<T>::zero() - now * scale;
  // As many sums as a vector has lanes, key j in number j mod width: the sums that lanes hold when keys lie along a vector.
  simd<T> sums[simd<T>::width];
  for (index i = 0; i < width; ++i) sums[i] = simd<T>::zero();
  for (index j = 0; j < shown; ++j) {
    const simd<T> p = exp(fma(simd<T>::load(s + j * stride), scale, shift));
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
  T *q, *s, *o, *top, *total, *limits;

  wide_attention(index width, scratch_pieces<T>& scratch)
      : q(scratch.take(width * tiles::columns)),
        s(scratch.take(tiles::keys * tiles::stride)),
        o(scratch.take(tiles::stride * tiles::padded(width))),
        top(scratch.take(tiles::columns)),
        total(scratch.take(tiles::columns)),
        limits(scratch.take(tiles::columns)) {}

  template <class Keys>
  void run(const attention_columns<T>& c, Keys& keys) {
    pack_columns<T>(q, c.count, c.width, [&](index x) { return c.query(x); });
    const index panels = round_up(c.count, tiles::panel) / tiles::panel, end = c.limit(c.count - 1);
    for (index x = 0; x < tiles::columns; ++x) top[x] = -std::numeric_limits<T>::infinity();
    // Columns of the last strip that are in no panel: multiplied, though their results are dropped.
    for (index j = 0; j < tiles::keys; ++j)
      for (index x = panels * tiles::panel; x < round_up(c.count, tiles::rows); ++x) s[j * tiles::stride + x] = T(0);
    for (index first = 0; first < end; first += tiles::keys) {
      const index shown = (std::min)(tiles::keys, end - first);
      const key_block<T> block = keys.read(first, shown);
      for (index p = 0; p < panels; ++p) score_panel(c, block, p, first, shown);
      weigh(c, block, first, shown);
    }
    for (index x = 0; x < c.count; ++x) c.finish(x, o + x * tiles::padded(c.width), top[x], total[x]);
  }

 private:
  // The weights of one panel of columns for `shown` keys; keys that no column of the panel sees get 0.
  void score_panel(const attention_columns<T>& c, const key_block<T>& block, index p, index first, index shown) {
    const index x = p * tiles::panel, last = (std::min)(x + tiles::panel, c.count) - 1;
    const index seen = (std::max)(index{0}, (std::min)(shown, c.limit(last) - first));
    for (index j = 0, rows = 0; j < seen; j += rows) {
      rows = direct_tiles<T>::next(seen - j);
      direct_tiles<T>::narrow(rows)(c.width, block.keys + j * block.key_stride, block.key_stride, q + x * c.width, tiles::panel,
                                    0, s + j * tiles::stride + x, tiles::stride, false);
    }
    const bool masked = c.limit(x) - first < seen;
    for (index i = x; i < x + tiles::panel; ++i)
      limits[i] = static_cast<T>((std::min)(tiles::keys, (std::max)(index{0}, c.limit((std::min)(i, last)) - first)));
    for (index v = x; v < x + tiles::panel; v += tiles::width) {
      const softmax_change<T> change = softmax_columns(s + v, seen, limits + v, masked, top + v, simd<T>::broadcast(c.scale));
      if (first == 0) {
        change.sum.store(total + v);
      } else {
        fma(simd<T>::load(total + v), change.rescale, change.sum).store(total + v);
        rescale(c, v, change.rescale);
      }
      for (index j = seen; j < shown; ++j) simd<T>::zero().store(s + j * tiles::stride + v);
    }
  }

  void rescale(const attention_columns<T>& c, index v, simd<T> factors) {
    T lanes[simd<T>::width];
    factors.store(lanes);
    const index padded = tiles::padded(c.width);
    for (index i = 0; i < tiles::width; ++i)
      if (lanes[i] != T(1)) {
        const simd<T> factor = simd<T>::broadcast(lanes[i]);
        T* row = o + (v + i) * padded;
        for (index k = 0; k < padded; k += tiles::width) (factor * simd<T>::load(row + k)).store(row + k);
      }
  }

  // o += weights^T values.
  void weigh(const attention_columns<T>& c, const key_block<T>& block, index first, index shown) {
    const index padded = tiles::padded(c.width);
    for (index x = 0; x < c.count; x += tiles::rows) {
      const index last = (std::min)(x + tiles::rows, c.count) - 1, seen = (std::min)(shown, c.limit(last) - first);
      if (seen <= 0) continue;
      for (index k = 0; k < padded; k += tiles::panel)
        tile<T, tiles::rows, 1, tile_source::transposed>(seen, s + x, tiles::stride, block.values + k, block.value_stride, 0,
                                                         o + x * padded + k, padded, first > 0);
    }
  }
};

/// The same for few columns, as when decoding: keys lie along the vectors. Same bits.
template <class T>
struct narrow_attention {
  using tiles = attention_tile<T>;
  static constexpr index columns = direct_tiles<T>::low;
  T *k, *s, *o;

  narrow_attention(index width, scratch_pieces<T>& scratch)
      : k(scratch.take(tiles::keys * width)),
        s(scratch.take(tiles::keys * columns)),
        o(scratch.take(tiles::padded(width) * columns)) {}

  template <class Keys>
  void run(const attention_columns<T>& c, Keys& keys) {
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const index end = c.limit(c.count - 1), padded = tiles::padded(c.width);
    T top[std::size_t{columns}], total[std::size_t{columns}];
    std::fill_n(top, columns, lowest);
    for (index first = 0; first < end; first += tiles::keys) {
      const index shown = (std::min)(tiles::keys, end - first);
      const key_block<T> block = keys.read(first, shown);
      pack_columns<T>(k, shown, c.width, [&](index j) { return block.keys + j * block.key_stride; });
      score(c, shown);
      for (index x = 0; x < c.count; ++x) {
        const index seen = (std::min)(shown, c.limit(x) - first);
        if (seen > 0)
          soften(s + x * tiles::keys, o + x * padded, seen, shown, c.scale, first > 0, padded, top[x], total[x]);
        else
          std::fill_n(s + x * tiles::keys, shown, T(0));
      }
      weigh(c, block, shown, first > 0);
    }
    for (index x = 0; x < c.count; ++x) c.finish(x, o + x * padded, top[x], total[x]);
  }

 private:
  void score(const attention_columns<T>& c, index shown) {
    const bool by_query = c.group == 1;  // consecutive columns are consecutive queries, otherwise heads of one query
    const index rows = by_query ? c.count : c.group;
    for (index x = 0; x < c.count; x += rows) {
      const index panels = direct_tiles<T>::wide_panels(rows), count = round_up(shown, tiles::panel) / tiles::panel;
      for (index p = 0; p < count;) {
        const bool wide = p + panels <= count;
        (wide ? direct_tiles<T>::wide(rows) : direct_tiles<T>::narrow(rows))(
            c.width, c.query(x), by_query ? c.q.stride : c.width, k + p * tiles::panel * c.width, tiles::panel,
            tiles::panel * c.width, s + x * tiles::keys + p * tiles::panel, tiles::keys, false);
        p += wide ? panels : 1;
      }
    }
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
    const simd<T> scale = simd<T>::broadcast(factor), shift = simd<T>::zero() - simd<T>::broadcast(top) * scale;
    simd<T> sums = simd<T>::zero();
    for (index j = 0; j < end; j += tiles::width) {
      const simd<T> p = exp(fma(simd<T>::load(x + j), scale, shift));
      p.store(x + j);
      sums = sums + p;
    }
    if (!more) {
      total = sum(sums);
      return;
    }
    const simd<T> rescale = exp((simd<T>::broadcast(before) - simd<T>::broadcast(top)) * scale);
    total = fma(simd<T>::broadcast(total), rescale, simd<T>::broadcast(sum(sums)))[0];
    if (rescale[0] != T(1))
      for (index c = 0; c < padded; c += tiles::width) (rescale * simd<T>::load(o + c)).store(o + c);
  }

  void weigh(const attention_columns<T>& c, const key_block<T>& block, index shown, bool more) {
    const index padded = tiles::padded(c.width), panels = direct_tiles<T>::wide_panels(c.count);
    for (index at = 0; at < padded;) {
      const bool wide = at + panels * tiles::panel <= padded;
      (wide ? direct_tiles<T>::wide(c.count) : direct_tiles<T>::narrow(c.count))(
          shown, s, tiles::keys, block.values + at, block.value_stride, tiles::panel, o + at, padded, more);
      at += (wide ? panels : 1) * tiles::panel;
    }
  }
};

/// How the heads that share keys are cut into columns: `group` of them at a time, `queries` positions a tile.
template <class T>
struct attention_split {
  index group, parts, queries;
  explicit attention_split(attention_shape shape) {
    const index sharing = shape.heads / shape.kv_heads;
    parts = (sharing + attention_tile<T>::columns - 1) / attention_tile<T>::columns;
    group = (sharing + parts - 1) / parts;
    queries = attention_tile<T>::columns / group;
  }
};

/// Below this many products of a query and a key, times the width, the calling thread does it alone.
inline constexpr index attention_inline_work = 65536;

/// Runs every tile of a batch. `open(tile, first_head, kv_head, scratch)` gives the keys and, by reference, how many the tile's
/// first query sees.
template <class T, class Open>
void attend(thread_pool& pool, matrix_view<const T> q, const batch_layout& layout, attention_shape shape, matrix_view<T> o,
            T* lse, index work, Open open) {
  const attention_split<T> split(shape);
  const sequence_tiles tiles(layout, split.queries);
  const index sharing = shape.heads / shape.kv_heads, across = shape.kv_heads * split.parts, tasks = tiles.slots() * across;
  const auto pieces = [&](T* memory) {
    scratch_pieces<T> s{memory};
    return s;
  };
  scratch_pieces<T> needed = pieces(nullptr);
  wide_attention<T>(shape.width, needed);
  narrow_attention<T>(shape.width, needed);
  needed.take(attention_tile<T>::keys * (shape.width + 2 * attention_tile<T>::padded(shape.width)));  // copies by `open`
  const auto one = [&](index task, int worker) {
    const sequence_tiles::tile t = tiles.at(task / across);
    if (t.sequence == nullptr) return;
    const index kv_head = task % across / split.parts, part = task % across % split.parts;
    scratch_pieces<T> scratch = pieces(pool.scratch<T>(worker, needed.used));
    wide_attention<T> wide(shape.width, scratch);
    narrow_attention<T> narrow(shape.width, scratch);
    attention_columns<T> c{q, o, lse, shape.heads, shape.width};
    c.row = t.sequence->begin + t.first;
    c.first_head = kv_head * sharing + part * split.group;
    c.group = (std::min)(split.group, sharing - part * split.group);
    c.count = t.count * c.group;
    c.scale = static_cast<T>(shape.scale);
    if (c.group <= 0) return;
    auto keys = open(t, kv_head, scratch, c.visible);
    if (c.count <= narrow_attention<T>::columns)
      narrow.run(c, keys);
    else
      wide.run(c, keys);
  };
  const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(needed.used);
  if (work < attention_inline_work) {
    pool.run(1, bytes, [&](index, int worker) {
      for (index task = 0; task < tasks; ++task) one(task, worker);
    });
  } else {
    pool.run(tasks, bytes, one);
  }
}

template <class T>
void attention(thread_pool& pool, matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v,
               const batch_layout& layout, attention_shape shape, matrix_view<T> o, T* lse) {
  index pairs = 0;
  for (const sequence_span& s : layout.sequences()) pairs += s.count * s.count / 2;
  attend<T>(pool, q, layout, shape, o, lse, pairs * shape.heads * shape.width,
            [&](const sequence_tiles::tile& t, index kv_head, scratch_pieces<T>& scratch, index& visible) {
              visible = t.first + 1;
              const index column = kv_head * shape.width, row = t.sequence->begin;
              return stored_keys<T>(k[row] + column, k.stride, v[row] + column, v.stride, shape.width, scratch);
            });
}

}  // namespace detail

GYRE_END
