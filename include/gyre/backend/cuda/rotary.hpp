// Rotary encoding of the `cuda` backend, of positions and of depths, and the sums of columns that its bias needs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <gyre/backend/cuda/kernels/column_sums.cuh>
#include <gyre/backend/cuda/kernels/rotary.cuh>

GYRE_BEGIN

namespace detail {

/// Bytes that must move, of s a scalar: rotations 2 s an element (angles come from the cache but for the first heads),
/// column_sum 1 s, and its partial sums besides.
template <class Backend>
struct cuda_rotary {
  template <class T, class S>
  void rotary(matrix_view<T> x, const std::type_identity_t<T>* bias, std::span<const std::int32_t> positions, const S* table,
              rotary_shape shape) {
    turn(x, bias, device().stage(positions), table, shape, false);
  }
  template <class T, class S>
  void rotary_backward(matrix_view<T> dx, std::span<const std::int32_t> positions, const S* table, rotary_shape shape) {
    turn<T>(dx, nullptr, device().stage(positions), table, shape, true);
  }
  template <class T, class S>
  void rotate(matrix_view<T> x, const S* angles, rotary_shape shape, bool back) {
    const S* const staged = device().stage(std::span<const S>(angles, static_cast<std::size_t>(shape.width)));
    turn<T>(x, nullptr, nullptr, staged, shape, back);
  }

  static constexpr index column_sum_workspace(index rows, index cols) { return partials_of(rows) * cols; }
  template <class T, class G>
  void column_sum(matrix_view<const T> x, G* sum, G* workspace) {
    launch_sum_columns<T>(device().stream(), x.rows, x.cols, rows_of_partial(x.rows), whole_packs<T>(x.cols, x),
                          terms_of_matrix<T, G>{x}, workspace, false);
    launch_add_partials<G>(device().stream(), workspace, partials_of(x.rows), x.cols, sum);
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }

  template <class T, class S>
  void turn(matrix_view<T> x, const T* bias, const std::int32_t* positions, const S* table, rotary_shape shape, bool back) {
    const bool half_split = shape.pairs == pairing::half_split;
    const index in_one_pack = half_split ? shape.width / 2 : shape.width;
    const bool packed = in_one_pack % pack_width<T> == 0 && rows_at_packs(x) && at_pack(table);
    if (packed)
      half_split ? launch<true, true>(x, bias, positions, table, shape, back)
                 : launch<true, false>(x, bias, positions, table, shape, back);
    else
      half_split ? launch<false, true>(x, bias, positions, table, shape, back)
                 : launch<false, false>(x, bias, positions, table, shape, back);
  }
  template <bool Packed, bool HalfSplit, class T, class S>
  void launch(matrix_view<T> x, const T* bias, const std::int32_t* positions, const S* table, rotary_shape shape, bool back) {
    constexpr index threads = rotary_threads, heads_each = heads_of_thread;
    const index parts_of_head = shape.width / 2 / pairs_of_thread<Packed, HalfSplit, T>;
    if (parts_of_head == 0 || shape.heads == 0) return;
    const index parts = (std::min)(parts_of_head, threads);
    const index groups = (std::min)((shape.heads + heads_each - 1) / heads_each, threads / parts);
    const index rows = threads / (parts * groups);
    const dim3 grid(blocks_for(x.rows, static_cast<unsigned>(rows)).x,
                    static_cast<unsigned>((shape.heads + groups * heads_each - 1) / (groups * heads_each)));
    simt::launch(turn_pairs<Packed, HalfSplit, T, S>, grid, rotary_threads, 0, device().stream(), x, bias, positions, table,
                 shape.heads, shape.width, back ? compute_t<T>(-1) : compute_t<T>(1),
                 rotary_grid{static_cast<unsigned>(parts), static_cast<unsigned>(groups), static_cast<unsigned>(rows)});
  }
};

}  // namespace detail

GYRE_END
