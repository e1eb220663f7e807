// Rows of a table, and their gradient: a thread for each pack of a row.
#pragma once

#include <gyre/backend/cuda/kernels/packs.cuh>

GYRE_BEGIN

namespace detail {

inline constexpr unsigned embedding_threads = 128;
inline constexpr int embedding_batch = 4;  // rows of a gradient on their way at once: hides the latency of reading them

/// Blocks for a row.
template <class T>
unsigned embedding_tiles(index cols) {
  return blocks_for(cols, embedding_threads * static_cast<unsigned>(pack_width<T>)).x;
}
/// The first column of this thread, in the tile of this block.
template <class T>
GYRE_DEVICE index embedding_column(unsigned tiles) {
  return static_cast<index>(blockIdx.x % tiles * embedding_threads + threadIdx.x) * pack_width<T>;
}

/// y[i] = scale * table[ids[i]]: `tiles` blocks for each i. Bytes floor: the rows of the table, and y.
template <bool Wide, class T>
GYRE_KERNEL void __launch_bounds__(embedding_threads)
    embed_rows(matrix_view<const T> table, const token* ids, compute_t<T> scale, matrix_view<T> y, unsigned tiles) {
  const auto i = static_cast<index>(blockIdx.x / tiles);
  const index j = embedding_column<T>(tiles), left = y.cols - j;
  compute_t<T> x[pack_width<T>];
  load_lanes<Wide>(table[ids[i]] + j, left, x);
  GYRE_UNROLL for (compute_t<T>& each : x) each *= scale;
  store_lanes<Wide>(x, left, y[i] + j);
}

/// numbers[i] = i.
template <int = 0>
GYRE_KERNEL void __launch_bounds__(embedding_threads) count_up(index count, std::int32_t* numbers) {
  const index i = thread_number();
  if (i < count) numbers[i] = static_cast<std::int32_t>(i);
}

/// dtable[id] += the sum of scale * dy[row] over the rows of that id, in their order. `ids` is sorted, `rows` are their rows;
/// `tiles` blocks for each place in it, of which those at an id's first place sum. Bytes floor: dy, and the rows of dtable
/// twice.
template <bool Wide, class T, class G>
GYRE_KERNEL void __launch_bounds__(embedding_threads)
    embed_backward_rows(matrix_view<const T> dy, const token* ids, const std::int32_t* rows, index count, compute_t<T> scale,
                        matrix_view<G> dtable, unsigned tiles) {
  constexpr int lanes = pack_width<T>;
  const auto first = static_cast<index>(blockIdx.x / tiles);
  const token id = ids[first];
  if (first > 0 && ids[first - 1] == id) return;
  const index j = embedding_column<T>(tiles), left = dy.cols - j;
  compute_t<G> sum[lanes];
  load_lanes<Wide>(dtable[id] + j, left, sum);
  for (index n = first;; n += embedding_batch) {
    compute_t<T> d[embedding_batch][lanes];
    bool same = true;
    GYRE_UNROLL for (int k = 0; k < embedding_batch; ++k) {
      same = n + k < count && ids[n + k] == id;
      load_lanes<Wide>(dy[same ? rows[n + k] : 0] + j, same ? left : 0, d[k]);  // zeros behind the last
    }
    GYRE_UNROLL for (int k = 0; k < embedding_batch; ++k) GYRE_UNROLL for (int l = 0; l < lanes; ++l) sum[l] +=
        static_cast<compute_t<G>>(scale * d[k][l]);
    if (!same) break;
  }
  store_lanes<Wide>(sum, left, dtable[id] + j);
}

}  // namespace detail

GYRE_END
