// Embedding and its gradient on the `cuda` backend.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>

#include <gyre/backend/cuda/kernels/embedding.cuh>
#include <gyre/core/error.hpp>

GYRE_BEGIN

namespace detail {

template <class Backend>
struct cuda_embedding {
  template <class T>
  void embed(matrix_view<const T> table, std::span<const token> ids, double scale, matrix_view<T> y) {
    const unsigned tiles = embedding_tiles<T>(y.cols);
    simt::launch(rows_at_packs(table) && rows_at_packs(y) ? embed_rows<true, T> : embed_rows<false, T>,
                 dim3(static_cast<unsigned>(y.rows) * tiles), embedding_threads, 0, device().stream(), table,
                 device().stage(ids), static_cast<compute_t<T>>(scale), y, tiles);
  }
  /// Rows are sorted by their ids, so that one block sums each id's, and the sum has an order.
  template <class T, class G>
  void embed_backward(matrix_view<const T> dy, std::span<const token> ids, double scale, matrix_view<G> dtable) {
    const index n = dy.rows;
    if (n == 0 || dy.cols == 0) return;
    require(n <= (std::numeric_limits<std::int32_t>::max)(), "embed_backward: ", n, " rows; at most 2^31 - 1 are sorted");
    const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(dtable.rows - 1)));
    const std::size_t arrays = (3 * sizeof(token) * static_cast<std::size_t>(n) + 255) / 256 * 256;
    std::byte* const memory = device().template workspace<std::byte>(static_cast<index>(arrays + device().sort_bytes(n, bits)));
    token* const sorted = reinterpret_cast<token*>(memory);
    std::int32_t *const rows = sorted + n, *const sorted_rows = rows + n;
    simt::launch(count_up<>, blocks_for(n, embedding_threads), embedding_threads, 0, device().stream(), n, rows);
    device().sort_by_key(device().stage(ids), rows, sorted, sorted_rows, n, bits, memory + arrays);
    const unsigned tiles = embedding_tiles<T>(dy.cols);
    simt::launch(
        rows_at_packs(dy) && rows_at_packs(dtable) ? embed_backward_rows<true, T, G> : embed_backward_rows<false, T, G>,
        dim3(static_cast<unsigned>(n) * tiles), embedding_threads, 0, device().stream(), dy, sorted, sorted_rows, n,
        static_cast<compute_t<T>>(scale), dtable, tiles);
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }
};

}  // namespace detail

GYRE_END
