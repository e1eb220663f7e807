// The contract's list of operations, by name: what plans, profiles and parity tables enumerate.
#pragma once

#include <array>
#include <string_view>

#include <gyre/config.hpp>

GYRE_BEGIN

enum class operation {
  fill,
  copy,
  add,
  gather,
  embed,
  embed_backward,
  rms_norm,
  add_rms_norm,
  rms_norm_backward,
  product,
  product_input_gradient,
  product_weight_gradient,
  grouped_product,
  grouped_product_input_gradient,
  grouped_product_weight_gradient,
  gated_silu,
  gated_silu_backward,
  rotary,
  rotary_backward,
  column_sum,
  attention,
  attention_backward,
  cache_append,
  cached_attention,
  cache_extend,
  rotate,
  depth_attention,
  depth_attention_backward,
  row_change,
  cross_entropy,
  sum,
  random_normal,
  standardise,
  squared_norm,
  combine,
  adamw_update,
  clipped_moments,
  atan2_update,
  count
};

inline constexpr std::array<std::string_view, static_cast<std::size_t>(operation::count)> operation_names{
    "fill",
    "copy",
    "add",
    "gather",
    "embed",
    "embed_backward",
    "rms_norm",
    "add_rms_norm",
    "rms_norm_backward",
    "product",
    "product_input_gradient",
    "product_weight_gradient",
    "grouped_product",
    "grouped_product_input_gradient",
    "grouped_product_weight_gradient",
    "gated_silu",
    "gated_silu_backward",
    "rotary",
    "rotary_backward",
    "column_sum",
    "attention",
    "attention_backward",
    "cache_append",
    "cached_attention",
    "cache_extend",
    "rotate",
    "depth_attention",
    "depth_attention_backward",
    "row_change",
    "cross_entropy",
    "sum",
    "random_normal",
    "standardise",
    "squared_norm",
    "combine",
    "adamw_update",
    "clipped_moments",
    "atan2_update"};

GYRE_END
