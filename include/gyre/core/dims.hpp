// Sizes and numbers of an architecture as one value that templates take: `template <dims D>`.
#pragma once

#include <gyre/config.hpp>

GYRE_BEGIN

/// The sizes of a model. A structural aggregate, written with designated initialisers:
/// `inline constexpr gyre::dims tiny{.vocab = 257, .width = 128, .heads = 4, .mlp = 352, .context = 256};`
/// Features are static, tokens and steps are dynamic, so nothing here counts rows of a batch or recurrence steps. Layers check
/// the numbers that they use in static_asserts that are sentences.
struct dims {
  int vocab = 0;        // V
  int width = 0;        // h, the hidden size
  int heads = 0;        // H, query heads
  int kv_heads = 0;     // G, key/value heads of grouped queries; 0: as many as query heads
  int head_width = 0;   // d; 0: width / heads
  int mlp = 0;          // m, inner width of the gated MLP
  int context = 0;      // most tokens in one sequence
  int mean_steps = 32;  // recurrence steps that the initialisation of output projections assumes (rbar)
  // Eight ints, so that no padding precedes the doubles: clang 14 reads members behind padding of a template argument wrongly.
  double rope_base = 50000;
  double norm_eps = 1e-6;

  constexpr int key_value_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  constexpr int width_per_head() const { return head_width > 0 || heads <= 0 ? head_width : width / heads; }
  constexpr int query_width() const { return heads * width_per_head(); }                  // H d
  constexpr int key_value_width() const { return key_value_heads() * width_per_head(); }  // G d
  constexpr bool operator==(const dims&) const = default;
};

GYRE_END
