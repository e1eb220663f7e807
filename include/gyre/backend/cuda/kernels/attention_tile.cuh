// What the kernels of sequence attention share: which rows a block has, and products of tiles of rows in shared memory.
#pragma once

#include <cstdint>

#include <gyre/backend/cuda/kernels/packs.cuh>

// The products' outer loops: a body is 64 products already, and more of them at once do not fit 128 registers.
#if defined(__CUDACC__)
#define GYRE_UNROLL_TWICE _Pragma("unroll 2")
#else
#define GYRE_UNROLL_TWICE
#endif

GYRE_BEGIN

namespace detail {

/// 16 threads have a row of scores between them, R rows and J columns each: a half warp, so that what one row needs from
/// another thread never leaves the warp.
inline constexpr unsigned attention_across = 16, attention_threads = 256;
inline constexpr unsigned attention_most_width = 256;  // of a head: what shared memory holds of a tile of rows

template <class T>
inline constexpr unsigned scalars_in_16_bytes = static_cast<unsigned>(pack_width<T>);

template <class T>
GYRE_DEVICE bool packs_aligned(const T* data, index stride, index width, unsigned pack) {
  const index bytes = static_cast<index>(sizeof(T) * pack);
  return width % static_cast<index>(pack) == 0 && static_cast<index>(reinterpret_cast<std::uintptr_t>(data)) % bytes == 0 &&
         stride * static_cast<index>(sizeof(T)) % bytes == 0;
}

/// The rows of a group of query heads that share a key/value head: number n of a sequence is head n % group of query n / group.
struct grouped_rows {
  index query;    // of row 0
  unsigned head;  // of row 0
  unsigned group;

  GYRE_DEVICE grouped_rows(index first, unsigned group_)
      : query(first / static_cast<index>(group_)),
        head(static_cast<unsigned>(first % static_cast<index>(group_))),
        group(group_) {}
  GYRE_DEVICE unsigned queries_to(unsigned row) const { return (head + row) / group; }
  GYRE_DEVICE index query_of(unsigned row) const { return query + static_cast<index>(queries_to(row)); }
  GYRE_DEVICE index head_of(unsigned row) const { return static_cast<index>((head + row) % group); }
};

/// Scores of 16 R rows on the left with 16 J rows on the right, all of up to Width features, in shared memory.
template <class C_, unsigned Width, unsigned R, unsigned J>
struct score_tile {
  using C = C_;
  static constexpr unsigned rows = R, columns = J;
  static constexpr unsigned pack = scalars_in_16_bytes<C>, left = attention_threads / attention_across * R,
                            right = attention_across * J;
  // One pack more than the row: 8 lanes that read a pack each of 8 rows meet no bank twice.
  static constexpr unsigned stride = Width + pack, score_stride = right + pack;
  static constexpr unsigned features = Width / attention_across;         // of a row, of each thread
  static constexpr unsigned blocks = sizeof(C) * Width <= 1024 ? 2 : 1;  // of a multiprocessor, as far as shared memory allows
  static_assert(Width % (attention_across * pack) == 0);

  static GYRE_DEVICE unsigned row(unsigned r) { return threadIdx.x / attention_across * R + r; }
  static GYRE_DEVICE unsigned column(unsigned j) { return threadIdx.x % attention_across + attention_across * j; }
  /// Features come in packs, so that the threads of a row read and write neighbouring ones.
  static GYRE_DEVICE unsigned feature(unsigned c) {
    return (c / pack * attention_across + threadIdx.x % attention_across) * pack + c % pack;
  }

  /// Fills `Rows` rows with those that source(row) points at, with zeros where that is null and behind `width`.
  template <unsigned Rows, class T, class Source>
  static GYRE_DEVICE void load(C* to, index width, bool aligned, Source source) {
    constexpr unsigned taken = scalars_in_16_bytes<T>, across = Width / taken;
    static_assert(attention_threads % across == 0 && attention_threads % Width == 0);
    if (!aligned) {
      const unsigned c = threadIdx.x % Width;
      for (unsigned i = threadIdx.x / Width; i < Rows; i += attention_threads / Width) {
        const T* const from = source(i);
        to[i * stride + c] = from != nullptr && static_cast<index>(c) < width ? widen(from[c]) : C(0);
      }
      return;
    }
    const unsigned first = threadIdx.x % across * taken;
    for (unsigned i = threadIdx.x / across; i < Rows; i += attention_threads / across) {
      const T* const from = source(i);
      detail::pack<T, taken> raw{};
      if (from != nullptr && static_cast<index>(first) < width)
        raw = *reinterpret_cast<const detail::pack<T, taken>*>(from + first);
      GYRE_UNROLL for (unsigned e = 0; e < taken; e += pack) {
        detail::pack<C, pack> wide;
        GYRE_UNROLL for (unsigned n = 0; n < pack; ++n) wide.at[n] = widen(raw.at[e + n]);
        *reinterpret_cast<detail::pack<C, pack>*>(to + i * stride + first + e) = wide;
      }
    }
  }

  static GYRE_DEVICE detail::pack<C, pack> pack_at(const C* x) { return *reinterpret_cast<const detail::pack<C, pack>*>(x); }

  /// s = the dot products of this thread's rows of a and columns' rows of b, summed in the order of the features.
  static GYRE_DEVICE void multiply(C (&s)[R][J], const C* a, const C* b, unsigned width) {
    GYRE_UNROLL for (unsigned r = 0; r < R; ++r) GYRE_UNROLL for (unsigned j = 0; j < J; ++j) s[r][j] = C(0);
    GYRE_UNROLL_TWICE for (unsigned d = 0; d < width; d += pack) {
      detail::pack<C, pack> x[R], y[J];
      GYRE_UNROLL for (unsigned r = 0; r < R; ++r) x[r] = pack_at(a + row(r) * stride + d);
      GYRE_UNROLL for (unsigned j = 0; j < J; ++j) y[j] = pack_at(b + column(j) * stride + d);
      GYRE_UNROLL for (unsigned e = 0; e < pack; ++e) GYRE_UNROLL for (unsigned r = 0; r < R; ++r)
          GYRE_UNROLL for (unsigned j = 0; j < J; ++j) s[r][j] += x[r].at[e] * y[j].at[e];
    }
  }
  /// Leaves the scores of this thread where the other threads of its rows read them.
  static GYRE_DEVICE void share(C* to, const C (&s)[R][J]) {
    GYRE_UNROLL for (unsigned r = 0; r < R; ++r) GYRE_UNROLL for (unsigned j = 0; j < J; ++j)
        to[row(r) * score_stride + column(j)] = s[r][j];
  }
  /// sums += the shared scores times the rows of b, `count` of them, one after the other. A pair that does not see each other,
  /// sees(r, column), adds nothing: not even 0 times what is there, which may be NaN.
  template <class Sees>
  static GYRE_DEVICE void accumulate(C (&sums)[R][features], const C* scores, const C* b, unsigned count, Sees sees) {
    GYRE_UNROLL_TWICE for (unsigned j = 0; j < count; j += pack) {
      detail::pack<C, pack> x[R];
      GYRE_UNROLL for (unsigned r = 0; r < R; ++r) x[r] = pack_at(scores + row(r) * score_stride + j);
      GYRE_UNROLL for (unsigned e = 0; e < pack; ++e) GYRE_UNROLL for (unsigned c = 0; c < features; c += pack) {
        const detail::pack<C, pack> y = pack_at(b + (j + e) * stride + feature(c));
        GYRE_UNROLL for (unsigned r = 0; r < R; ++r) {
          if (!sees(r, j + e)) continue;
          GYRE_UNROLL for (unsigned n = 0; n < pack; ++n) sums[r][c + n] += x[r].at[e] * y.at[n];
        }
      }
    }
  }
  /// Writes this thread's features of one row.
  template <class T>
  static GYRE_DEVICE void store(T* to, const C (&x)[features], index width, bool aligned) {
    GYRE_UNROLL for (unsigned c = 0; c < features; c += pack) {
      const unsigned first = feature(c);
      detail::pack<T, pack> y;
      GYRE_UNROLL for (unsigned n = 0; n < pack; ++n) y.at[n] = narrow<T>(x[c + n]);
      if (aligned) {
        if (static_cast<index>(first) < width) *reinterpret_cast<detail::pack<T, pack>*>(to + first) = y;
      } else {
        GYRE_UNROLL for (unsigned n = 0; n < pack; ++n) if (static_cast<index>(first + n) < width) to[first + n] = y.at[n];
      }
    }
  }
};

/// How many keys of the tile that begins at key `first` are among the first `all`: at most the tile, negative where it is
/// behind.
template <class Tile>
GYRE_DEVICE int keys_before(index all, index first) {
  return static_cast<int>(all - first < static_cast<index>(Tile::right) ? all - first : static_cast<index>(Tile::right));
}

/// Of the 16 threads that have a row; the same bits in each.
template <class C>
GYRE_DEVICE C row_sum(C x) {
  return warp_sum<attention_across>(x);
}
/// The largest number; NaN counts as none.
template <class C>
GYRE_DEVICE C row_max(C x) {
  GYRE_UNROLL for (int lane = attention_across / 2; lane > 0; lane /= 2) {
    const C other = __shfl_xor_sync(whole_warp, x, lane);
    x = other > x ? other : x;
  }
  return x;
}

}  // namespace detail

GYRE_END

#undef GYRE_UNROLL_TWICE
