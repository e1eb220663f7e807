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
  T *q, *d_o;    // packed columns
  T *p, *ds;     // (keys, stride): weights and score gradients, transposed
  T *lse, *dot;  // of each column: log-sum-exp, sum of weight x weight gradient
  T* panels;     // a right factor

  gradient_buffers(index width, scratch_pieces<T>& scratch)
      : q(scratch.take(width * tiles::gradient_rows)),
        d_o(scratch.take(width * tiles::gradient_rows)),
        p(scratch.take(tiles::gradient_rows * tiles::gradient_stride)),
        ds(scratch.take(tiles::gradient_rows * tiles::gradient_stride)),
        lse(scratch.take(tiles::gradient_rows)),
        dot(scratch.take(tiles::gradient_rows)),
        panels(scratch.take(tiles::gradient_rows * tiles::padded(width))) {}

  /// x as the right factor of a product: in panels, attention_tile::gradient_rows rows apart.
  const T* pack(matrix_view<const T> x) {
    pack_rows<int{tiles::panel}>(panels, tiles::gradient_rows, x, 0, x.rows);
    return panels;
  }
};

/// Weights and score gradients of one vector of columns: s becomes p = exp(scale s - lse), dp becomes ds = scale p (dp - dot),
/// for `seen` keys.
template <class T>
void score_gradients(T* s, T* dp, index seen, simd<T> lse, simd<T> dot, simd<T> scale) {
  constexpr index stride = attention_tile<T>::gradient_stride;
  const simd<T> zero = simd<T>::zero(), shift = zero - lse;
  for (index j = 0; j < seen; ++j) {
    // At most 1: where scores are very large, the rounding of lse may be anything.
    const simd<T> p = exp(zero - maximum(zero, zero - fma(simd<T>::load(s + j * stride), scale, shift)));
    p.store(s + j * stride);
    (p * (simd<T>::load(dp + j * stride) - dot) * scale).store(dp + j * stride);
  }
}

/// Adds the tile's share to dq, dk and dv.
template <class T>
void run_gradient_tile(const attention_gradient<T>& g, const gradient_tile<T>& t, gradient_buffers<T>& buffer) {
  using tiles = attention_tile<T>;
  constexpr index width = tiles::width, panel = tiles::panel, stride = tiles::gradient_stride;
  const index d = g.shape.width;
  const auto head = [&](auto x) { return x.slice(t.query_row, t.queries).columns(t.head * d, d); };
  const auto kv_head = [&](auto x) { return x.slice(t.key_row, t.keys).columns(t.kv_head * d, d); };
  const matrix_view<const T> q = head(g.q), d_o = head(g.d_o), o = head(g.o), k = kv_head(g.k), v = kv_head(g.v);

  pack_columns(buffer.q, t.queries, d, q.data, q.stride);
  pack_columns(buffer.d_o, t.queries, d, d_o.data, d_o.stride);
  for (index x = 0; x < round_up(t.queries, panel); ++x) {
    const index i = (std::min)(x, t.queries - 1);
    buffer.lse[x] = g.lse[(t.query_row + i) * g.shape.heads + t.head];
    const T *a = o[i], *b = d_o[i];
    buffer.dot[x] = sum(accumulate_vectors<T>(
        d, [&](index j, auto lanes, simd<T> s) GYRE_INLINE_LAMBDA { return fma(lanes.load(a + j), lanes.load(b + j), s); }));
  }

  // Weights and score gradients, (keys, queries), of the keys that any column of a panel sees. On the diagonal that makes some
  // of a query and a later key; nobody reads those.
  const index panels = round_up(t.queries, panel) / panel;
  // Columns of the last strip that are in no panel: multiplied, though their results are dropped.
  for (index j = 0; j < t.keys; ++j)
    for (index x = panels * panel; x < round_up(t.queries, tiles::rows); ++x) buffer.ds[j * stride + x] = T(0);
  for (index p = 0; p < panels; ++p) {
    const index x = p * panel, seen = t.diagonal ? (std::min)(t.keys, x + panel) : t.keys;
    multiply_panels<T>({buffer.p + x, seen, panel, stride}, k.slice(0, seen), buffer.q + x * d, panel, 0, false);
    multiply_panels<T>({buffer.ds + x, seen, panel, stride}, v.slice(0, seen), buffer.d_o + x * d, panel, 0, false);
    for (index c = x; c < x + panel; c += width) {
      score_gradients(buffer.p + c, buffer.ds + c, seen, simd<T>::load(buffer.lse + c), simd<T>::load(buffer.dot + c),
                      simd<T>::broadcast(static_cast<T>(g.shape.scale)));
    }
  }

  // dv += p d_o and dk += ds q. On the diagonal: key by key for the queries that see only some keys of a strip, then all keys
  // for the others.
  const matrix_view<T> dk = kv_head(g.dk), dv = kv_head(g.dv), dq = head(g.dq);
  constexpr index packed = panel * tiles::gradient_rows;
  const auto sum_over_queries = [&](const T* a, const T* b, matrix_view<T> c) {
    for (index j = 0, rows = 0; j < t.keys; j += rows) {
      rows = direct_tiles<T>::next(t.keys - j);
      const index from = t.diagonal ? j + rows - 1 : 0;
      for (index i = j; t.diagonal && i < j + rows; ++i)
        multiply_row(c[i], d, from - i, a + i * stride + i, 1, b + i * panel, panel, packed, !t.first_key);
      multiply_panels<T>(c.slice(j, rows), {a + j * stride + from, rows, t.queries - from, stride}, b + from * panel, panel,
                         packed, t.diagonal || !t.first_key);
    }
  };
  sum_over_queries(buffer.p, buffer.pack(d_o), dv);
  sum_over_queries(buffer.ds, buffer.pack(q), dk);
  // dq += ds^T k. On the diagonal: all queries of a strip for the keys that they all see, then query by query for the others.
  const T* keys = buffer.pack(k);
  for (index i = 0; i < t.queries; i += tiles::rows) {
    const index rows = (std::min)(tiles::rows, t.queries - i), all = t.diagonal ? i + 1 : t.keys;
    multiply_turned(dq.slice(i, rows), buffer.ds + i, stride, all, keys, packed, !t.first_query);
    for (index j = all; t.diagonal && j < i + rows; ++j)
      multiply_row(dq[j], d, j + 1 - all, buffer.ds + all * stride + j, stride, keys + all * panel, panel, packed, true);
  }
}

/// Tiles of keys and tiles of queries are the same rows. In wave w every tile of queries meets the tile of keys w before it,
/// so that no two tasks of a wave touch the same rows of dq, or of dk and dv, and every sum has one order.
template <class T>
void attention_backward(thread_pool& pool, const attention_gradient<T>& g, const batch_layout& layout) {
  const sequence_tiles tiles(layout, attention_tile<T>::gradient_rows);
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
      t.key_row = t.query_row - wave * attention_tile<T>::gradient_rows;
      t.keys = wave == 0 ? queries.count : attention_tile<T>::gradient_rows;
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
