// The calls of gpu_calls, as nvcc compiles them: with kernels.
#pragma once

#include <array>

#include <gyre/backend/cuda.hpp>

#include "nvcc/gpu_calls.hpp"

namespace gyre_test {

template <gyre::operation Op, class... A>
void call_on_gpu(const gpu_memory& memory, const A&... a) {
  gyre::parity::signature<Op>::call(*static_cast<gyre::cuda*>(memory.device()), a...);
}

using call = void (*)();
/// Its address makes the compiler keep a call.
template <gyre::operation Op, class... A>
call held() {
  return reinterpret_cast<call>(&call_on_gpu<Op, A...>);
}

/// Arguments of the contract, for scalars T and statistics S.
template <class T, class S>
struct calls_in {
  using operation = gyre::operation;
  using index = gyre::index;
  using in = gyre::matrix_view<const T>;
  using out = gyre::matrix_view<T>;
  using wide_in = gyre::matrix_view<const S>;
  using wide_out = gyre::matrix_view<S>;
  using weight = gyre::weight_matrix<T, gpu_memory::prepared<T>>;
  using layout = std::reference_wrapper<const gyre::batch_layout>;
  using ids = std::span<const gyre::token>;
  using whole = std::span<const std::int32_t>;
  using places = const std::int32_t*;
  using lanes = std::span<const gyre::cache_lane<T>>;
  using heads = gyre::attention_shape;
  using turns = gyre::rotary_shape;
  using groups = gyre::row_groups;

  static auto rows() {
    return std::array{held<operation::fill, out, T>(),
                      held<operation::copy, wide_in, out>(),
                      held<operation::copy, in, wide_out>(),
                      held<operation::add, in, out>(),
                      held<operation::add_scaled, in, const T*, out>(),
                      held<operation::add_scaled_backward, in, const T*, in, out, S*, S*>(),
                      held<operation::gather, in, std::span<const index>, out>(),
                      held<operation::embed, in, ids, double, out>(),
                      held<operation::embed_backward, in, ids, double, wide_out>(),
                      held<operation::rms_norm, in, const T*, double, out, S*>(),
                      held<operation::add_rms_norm, in, in, const T*, double, out, out, S*>(),
                      held<operation::rms_norm_backward, in, const T*, const S*, in, out, S*, S*>(),
                      held<operation::gated_silu, in, out>(),
                      held<operation::gated_silu_backward, in, in, out>(),
                      held<operation::rotary, out, const T*, whole, const S*, turns>(),
                      held<operation::rotary_backward, out, whole, const S*, turns>(),
                      held<operation::rotate, out, const S*, turns, bool>(),
                      held<operation::column_sum, in, S*, S*>(),
                      held<operation::row_change, in, in, S*>(),
                      held<operation::cross_entropy, out, ids, S, S*, bool>(),
                      held<operation::random_normal, out, layout, gyre::state_key, double, bool>(),
                      held<operation::standardise, out>()};
  }
  static auto products() {
    return std::array{held<operation::product, in, weight, out, bool>(),
                      held<operation::product, in, weight, wide_out, bool>(),
                      held<operation::product_input_gradient, in, weight, out, bool>(),
                      held<operation::product_weight_gradient, in, in, wide_out>(),
                      held<operation::grouped_product, in, weight, groups, out, bool>(),
                      held<operation::grouped_product_input_gradient, in, weight, groups, out, bool>(),
                      held<operation::grouped_product_weight_gradient, in, in, groups, wide_out>()};
  }
  static auto attention() {
    return std::array{held<operation::attention, in, in, in, layout, heads, out, S*>(),
                      held<operation::attention_backward, in, in, in, in, const S*, in, layout, heads, out, out, out, S*>(),
                      held<operation::cache_append, in, in, layout, lanes, index>(),
                      held<operation::cached_attention, in, layout, lanes, index, heads, int, out>(),
                      held<operation::cache_extend, layout, lanes, whole, index, std::span<const index>, index>(),
                      held<operation::depth_attention, in, in, in, heads, out, S*>(),
                      held<operation::depth_attention_backward, in, in, in, in, const S*, in, heads, out, out, out>()};
  }
  static auto pairs() {
    return std::array{held<operation::spread, in, places, index, out>(),
                      held<operation::collect, in, places, const S*, index, out>(),
                      held<operation::collect_backward, in, in, places, const S*, index, out, S*>()};
  }
  /// What has no scalar but that of statistics, or master weights.
  static auto statistics() {
    using loss = gyre::router_loss_weights;
    return std::array{held<operation::route, wide_in, const S*, double, index, std::int32_t*, S*, S*>(),
                      held<operation::route_backward, const S*, const S*, places, const S*, double, index, wide_out>(),
                      held<operation::group_pairs, places, index, index, std::int32_t*, std::int32_t*, std::int32_t*>(),
                      held<operation::router_loss, wide_in, double, places, index, layout, loss, S*>(),
                      held<operation::router_loss_backward, wide_in, double, places, index, layout, loss, S, wide_out>(),
                      held<operation::sample, wide_in, std::span<const gyre::sampling_row>, ids, gyre::token*, double*>(),
                      held<operation::sum, const S*, index, S*>(),
                      held<operation::squared_norm, const S*, index, double*>(),
                      held<operation::unit, const S*, const double*, S*, index>(),
                      held<operation::combine, S, const S*, S, S*, index>(),
                      held<operation::adamw_update, S*, const S*, S*, S*, index, gyre::adamw_numbers>(),
                      held<operation::clipped_atan2_update, S*, const S*, S*, S*, index, gyre::clipped_atan2_numbers>()};
  }
};

}  // namespace gyre_test
