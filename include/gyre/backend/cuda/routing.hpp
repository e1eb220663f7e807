// Routing of the `cuda` backend: choice of experts and gates, pairs sorted by expert, rows there and back, losses of a router.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include <gyre/backend/cuda/kernels/elementwise.cuh>
#include <gyre/backend/cuda/kernels/group_pairs.cuh>
#include <gyre/backend/cuda/kernels/pairs.cuh>
#include <gyre/backend/cuda/kernels/route.cuh>
#include <gyre/backend/cuda/kernels/router_loss.cuh>
#include <gyre/backend/cuda/kernels/scan.cuh>
#include <gyre/ops/routing.hpp>

GYRE_BEGIN

namespace detail {

template <class Backend>
struct cuda_routing {
  template <class T, class S>
  void route(matrix_view<const T> scores, const std::type_identity_t<T>* bias, double scale, index active, std::int32_t* chosen,
             S* logits, S* gates) {
    check_active("route", active, scores.cols);
    const route_scores<T, S> from{scores, bias, static_cast<S>(scale)};
    const auto with = [&](auto kernel) { warps(kernel, scores.rows, route_threads, from, active, chosen, logits, gates); };
    const index each_lane = (scores.cols + static_cast<index>(warp_lanes) - 1) / static_cast<index>(warp_lanes);
    if (each_lane <= route_held[0]) return with(choose_experts<route_held[0], T, S>);
    if (each_lane <= route_held[1]) return with(choose_experts<route_held[1], T, S>);
    if (each_lane <= route_held[2]) return with(choose_experts<route_held[2], T, S>);
    with(choose_experts<0, T, S>);
  }

  template <class T, class S>
  void route_backward(const S* logits, const S* gates, const std::int32_t* chosen, const S* d_gates, double scale, index active,
                      matrix_view<T> d_scores) {
    check_active("route_backward", active, d_scores.cols);
    warps(choose_experts_backward<T, S>, d_scores.rows, route_threads, logits, gates, chosen, d_gates, static_cast<S>(scale),
          active, d_scores);
  }

  /// The host cannot see a pair that names no expert without waiting for the device: it goes to the nearest expert that there is.
  void group_pairs(const std::int32_t* chosen, index pairs, index experts, std::int32_t* offsets, std::int32_t* place,
                   std::int32_t* source) {
    check_pairs(pairs);
    require(pairs == 0 || experts > 0, "group_pairs: ", pairs, " pairs for no expert");
    const pair_units units(pairs, experts);
    const index counts = units.count * experts;
    std::int32_t* const next = device().template workspace<std::int32_t>(counts + exclusive_sums_workspace(counts));
    warps(count_pairs<>, units.count, group_threads, chosen, units, next);
    exclusive_sums(next, counts, device().stream());
    warps(place_pairs<>, units.count, group_threads, chosen, units, next, offsets, place, source);
  }

  template <class T>
  void spread(matrix_view<const T> x, const std::int32_t* source, index active, matrix_view<T> y) {
    constexpr int pack = pack_width<T>;
    if (rows_at_packs(x, y))
      simt::launch(spread_rows<pack, T>, blocks_for_rows(y.rows, y.cols, pack), pair_threads, 0, device().stream(), x, source,
                   active, y);
    else
      simt::launch(spread_rows<1, T>, blocks_for_rows(y.rows, y.cols, 1), pair_threads, 0, device().stream(), x, source, active,
                   y);
  }
  template <class T, class S>
  void collect(matrix_view<const T> y, const std::int32_t* place, const S* gates, index active, matrix_view<T> x) {
    constexpr int pack = pack_width<T>;
    if (rows_at_packs(x, y))
      simt::launch(collect_rows<pack, T, S>, blocks_for_rows(x.rows, x.cols, pack), pair_threads, 0, device().stream(), y,
                   place, gates, active, x);
    else
      simt::launch(collect_rows<1, T, S>, blocks_for_rows(x.rows, x.cols, 1), pair_threads, 0, device().stream(), y, place,
                   gates, active, x);
  }
  template <class T, class S>
  void collect_backward(matrix_view<const T> dx, matrix_view<const T> y, const std::int32_t* place, const S* gates,
                        index active, matrix_view<T> dy, S* d_gates) {
    const index pairs = dx.rows * active;
    if (rows_at_packs(dx, y, dy))
      warps(collect_rows_backward<pack_width<T>, T, S>, pairs, pair_threads, dx, y, place, gates, active, dy, d_gates);
    else
      warps(collect_rows_backward<1, T, S>, pairs, pair_threads, dx, y, place, gates, active, dy, d_gates);
  }

  template <class T, class S>
  void router_loss(matrix_view<const T> scores, double scale, const std::int32_t* chosen, index active,
                   const batch_layout& layout, router_loss_weights weights, S* losses) {
    check_active("router_loss", active, scores.cols);
    check_layout("router_loss", scores.rows, layout.rows());
    S* of_rows = nullptr;
    const router_rows<T, S> rows = counted(scores, scale, chosen, active, layout, weights, scores.rows, of_rows);
    warps(router_row_losses<T, S>, scores.rows, router_loss_threads, rows, of_rows);
    simt::launch(sum_of_sequences<S>, dim3(static_cast<unsigned>(rows.sequence_count)), router_loss_threads, 0,
                 device().stream(), static_cast<const S*>(of_rows), rows.sequences, losses);
  }
  template <class T, class S>
  void router_loss_backward(matrix_view<const T> scores, double scale, const std::int32_t* chosen, index active,
                            const batch_layout& layout, router_loss_weights weights, S factor, matrix_view<T> d_scores) {
    check_active("router_loss_backward", active, scores.cols);
    check_layout("router_loss_backward", scores.rows, layout.rows());
    S* of_rows = nullptr;
    warps(router_row_losses_backward<T, S>, scores.rows, router_loss_threads,
          counted(scores, scale, chosen, active, layout, weights, 0, of_rows), factor, d_scores);
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }
  /// A warp for every row.
  template <class Kernel, class... Arguments>
  void warps(Kernel kernel, index rows, unsigned threads, const Arguments&... arguments) {
    simt::launch(kernel, blocks_for(rows * static_cast<index>(warp_lanes), threads), threads, 0, device().stream(),
                 arguments...);
  }
  /// Counts how many rows of each sequence chose each expert. Workspace: `scalars` of S, then the counts.
  template <class T, class S>
  router_rows<T, S> counted(matrix_view<const T> scores, double scale, const std::int32_t* chosen, index active,
                            const batch_layout& layout, router_loss_weights weights, index scalars, S*& workspace) {
    const auto sequences = layout.sequences();
    const index count = std::ssize(sequences), cells = count * scores.cols, size = static_cast<index>(sizeof(S)),
                bytes = cells * static_cast<index>(sizeof(std::int32_t));
    workspace = device().template workspace<S>(scalars + (bytes + size - 1) / size);
    const router_rows<T, S> rows{scores,
                                 static_cast<S>(scale),
                                 static_cast<S>(weights.balance),
                                 static_cast<S>(weights.z),
                                 active,
                                 device().stage(sequences),
                                 count,
                                 reinterpret_cast<std::int32_t*>(workspace + scalars)};
    static_cast<Backend&>(*this).fill(matrix_view<std::int32_t>(rows.counts, 1, cells), 0);
    const index pairs = scores.rows * active;
    simt::launch(count_chosen<T, S>, blocks_for(pairs, router_loss_threads), router_loss_threads, 0, device().stream(), rows,
                 chosen);
    return rows;
  }
};

}  // namespace detail

GYRE_END
