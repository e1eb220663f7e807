// Sequence attention of the `cpu` backend, backward: the weights of a tile are computed again from the log-sum-exp.
#pragma once

#include <gyre/backend/cpu/attention_tile.hpp>
#include <gyre/backend/cpu/product.hpp>
#include <gyre/backend/cpu/split.hpp>

GYRE_BEGIN

namespace detail {

/// Operands of one backward pass. All matrices are (rows, heads * width) or (rows, kv_heads * width).
template <class T>
struct attention_gradient {
  matrix_view<const T> q, k, v, o;
  const T* lse;  // (rows, heads)
  matrix_view<const T> d_o;
  matrix_view<T> dq, dk, dv;
  attention_shape shape;
};

/// One tile of queries of one head against one tile of keys of the same sequence.
template <class T>
struct gradient_tile {
  using tiles = attention_tile<T>;
  index query_row, queries, head, key_row, keys, kv_head;
  bool diagonal;                // the tiles are at the same place: a query sees the keys up to its own
  bool first_query, first_key;  // whether dq, and dk and dv, are assigned rather than added to
};

template <class T>
struct gradient_buffers {
  using tiles = attention_tile<T>;
  T *q, *d_o;          // packed columns
  T *p, *ds;           // (keys, stride): weights and score gradients, transposed
  T *lse, *dot, *end;  // of each column: log-sum-exp, sum of weight x weight gradient, first key it does not see
  T* copy = nullptr;   // rows padded to whole panels

  gradient_buffers(index width, scratch_pieces<T>& scratch)
      : q(scratch.take(width * tiles::columns)),
        d_o(scratch.take(width * tiles::columns)),
        p(scratch.take(tiles::columns * tiles::stride)),
        ds(scratch.take(tiles::columns * tiles::stride)),
        lse(scratch.take(tiles::columns)),
        dot(scratch.take(tiles::columns)),
        end(scratch.take(tiles::columns)) {
    if (tiles::padded(width) != width) copy = scratch.take(tiles::columns * tiles::padded(width));
  }

  /// `count` rows from x on, as a right factor that is read in whole panels.
  matrix_view<const T> whole_panels(matrix_view<const T> x) {
    if (copy == nullptr) return x;
    const index padded = tiles::padded(x.cols);
    for (index i = 0; i < x.rows; ++i) {
      std::copy_n(x[i], x.cols, copy + i * padded);
      std::fill_n(copy + i * padded + x.cols, padded - x.cols, T(0));
    }
    return {copy, x.rows, padded};
  }
};

/// Weights and score gradients of one vector of columns: s becomes p = exp(scale s - lse), dp becomes
/// ds = scale p (dp - dot), for `seen` keys.
template <class T>
void score_gradients(T* s, T* dp, index seen, bool masked, simd<T> lse, simd<T> dot, simd<T> end, simd<T> scale) {
  constexpr index stride = attention_tile<T>::stride;
  const simd<T> shift = simd<T>::zero() - lse;
  for (index j = 0; j < seen; ++j) {
    simd<T> p = exp(fma(simd<T>::load(s + j * stride), scale, shift));
    if (masked) p = where_below(simd<T>::broadcast(static_cast<T>(j)), end, p, simd<T>::zero());
    p.store(s + j * stride);
    (p * (simd<T>::load(dp + j * stride) - dot) * scale).store(dp + j * stride);
  }
}

/// C(rows, cols) (+)= A B for the few rows of a strip: A direct, B in whole panels.
template <class T>
void multiply_strip(matrix_view<T> c, const T* a, index a_stride, matrix_view<const T> b, bool load) {
  constexpr index panel = attention_tile<T>::panel;
  for (index k = 0; k < c.cols; k += panel)
    tile_edge<T>(direct_tiles<T>::narrow(c.rows), c.rows, panel, c.rows, (std::min)(panel, c.cols - k), b.rows, a, a_stride,
                 b.data + k, b.stride, 0, c.data + k, c.stride, load);
}

/// Adds the tile's share to dq, dk and dv.
template <class T>
void run_gradient_tile(const attention_gradient<T>& g, const gradient_tile<T>& t, gradient_buffers<T>& buffer) {
  using tiles = attention_tile<T>;
  constexpr index width = tiles::width, panel = tiles::panel, stride = tiles::stride;
  const index d = g.shape.width;
  const auto head = [&](auto x) { return x.slice(t.query_row, t.queries).columns(t.head * d, d); };
  const auto kv_head = [&](auto x) { return x.slice(t.key_row, t.keys).columns(t.kv_head * d, d); };
  const matrix_view<const T> q = head(g.q), d_o = head(g.d_o), o = head(g.o), k = kv_head(g.k), v = kv_head(g.v);

  pack_columns<T>(buffer.q, t.queries, d, [&](index x) { return q[x]; });
  pack_columns<T>(buffer.d_o, t.queries, d, [&](index x) { return d_o[x]; });
  for (index x = 0; x < round_up(t.queries, panel); ++x) {
    const index i = (std::min)(x, t.queries - 1);
    buffer.lse[x] = g.lse[(t.query_row + i) * g.shape.heads + t.head];
    buffer.end[x] = static_cast<T>(i + 1);
    const T *a = o[i], *b = d_o[i];
    buffer.dot[x] = sum(accumulate_vectors<T>(
        d, [&](index j, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA { return fma(lanes.load(a + j), lanes.load(b + j), s); }));
  }

  // Scores and weight gradients, (keys, queries). Keys that no column of a panel sees are 0.
  const index panels = round_up(t.queries, panel) / panel;
  for (index p = 0; p < panels; ++p) {
    const index x = p * panel, seen = t.diagonal ? (std::min)(t.keys, x + panel) : t.keys;
    for (index j = 0, rows = 0; j < seen; j += rows) {
      rows = direct_tiles<T>::next(seen - j);
      const auto scores = direct_tiles<T>::narrow(rows);
      scores(d, k[j], k.stride, buffer.q + x * d, panel, 0, buffer.p + j * stride + x, stride, false);
      scores(d, v[j], v.stride, buffer.d_o + x * d, panel, 0, buffer.ds + j * stride + x, stride, false);
    }
    for (index c = x; c < x + panel; c += width) {
      score_gradients(buffer.p + c, buffer.ds + c, seen, t.diagonal, simd<T>::load(buffer.lse + c),
                      simd<T>::load(buffer.dot + c), simd<T>::load(buffer.end + c),
                      simd<T>::broadcast(static_cast<T>(g.shape.scale)));
      for (index j = seen; j < t.keys; ++j) {
        simd<T>::zero().store(buffer.p + j * stride + c);
        simd<T>::zero().store(buffer.ds + j * stride + c);
      }
    }
  }

  // dv += p d_o and dk += ds q: queries before a strip's first key do not see it.
  const matrix_view<T> dk = kv_head(g.dk), dv = kv_head(g.dv), dq = head(g.dq);
  const auto sum_over_queries = [&](const T* a, matrix_view<const T> b, matrix_view<T> c) {
    for (index j = 0, rows = 0; j < t.keys; j += rows) {
      rows = direct_tiles<T>::next(t.keys - j);
      const index from = t.diagonal ? (std::min)(j, t.queries) : 0;
      multiply_strip<T>(c.slice(j, rows), a + j * stride + from, stride, b.slice(from, t.queries - from), !t.first_key);
    }
  };
  sum_over_queries(buffer.p, buffer.whole_panels(d_o), dv);
  sum_over_queries(buffer.ds, buffer.whole_panels(q), dk);
  // dq += ds^T k.
  const matrix_view<const T> keys = buffer.whole_panels(k);
  for (index i = 0; i < t.queries; i += tiles::rows) {
    const index rows = (std::min)(index{tiles::rows}, t.queries - i), seen = t.diagonal ? (std::min)(t.keys, i + rows) : t.keys;
    for (index c = 0; c < d; c += panel)
      tile_edge<T>(tile<T, tiles::rows, 1, tile_source::transposed>, tiles::rows, panel, rows, (std::min)(panel, d - c), seen,
                   buffer.ds + i, stride, keys.data + c, keys.stride, 0, dq[i] + c, dq.stride, !t.first_query);
  }
}

/// Tiles of keys and tiles of queries are the same rows. In wave w every tile of queries meets the tile of keys w before it, so
/// that no two tasks of a wave touch the same rows of dq, or of dk and dv, and every sum has one order.
template <class T>
void attention_backward(thread_pool& pool, const attention_gradient<T>& g, const batch_layout& layout) {
  const sequence_tiles tiles(layout, attention_tile<T>::columns);
  const index sharing = g.shape.heads / g.shape.kv_heads, waves = tiles.longest();
  scratch_pieces<T> needed;
  gradient_buffers<T>(g.shape.width, needed);
  const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(needed.used);
  for (index wave = 0; wave < waves; ++wave)
    pool.run(tiles.slots() * g.shape.kv_heads, bytes, [&](index task, int worker) {
      const sequence_tiles::tile queries = tiles.at(task / g.shape.kv_heads);
      if (queries.sequence == nullptr || queries.number < wave) return;
      scratch_pieces<T> scratch{pool.scratch<T>(worker, needed.used)};
      gradient_buffers<T> buffer(g.shape.width, scratch);
      gradient_tile<T> t{};
      t.query_row = queries.sequence->begin + queries.first;
      t.queries = queries.count;
      t.key_row = t.query_row - wave * attention_tile<T>::columns;
      t.keys = wave == 0 ? queries.count : attention_tile<T>::columns;
      t.kv_head = task % g.shape.kv_heads;
      t.diagonal = t.first_query = wave == 0;
      for (index h = 0; h < sharing; ++h) {
        t.head = t.kv_head * sharing + h;
        t.first_key = wave == 0 && h == 0;
        run_gradient_tile(g, t, buffer);
      }
    });
}

}  // namespace detail

GYRE_END
