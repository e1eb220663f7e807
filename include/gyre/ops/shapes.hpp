// Shapes and options that operations take beside their views.
#pragma once

#include <gyre/core/types.hpp>

GYRE_BEGIN

/// Which two features of a head one angle turns: (2j, 2j + 1), or (j, j + d / 2).
enum class pairing : std::uint8_t { adjacent, half_split };

struct rotary_shape {
  index heads = 0, width = 0;  // of one head
  pairing pairs = pairing::adjacent;
};

struct attention_shape {
  index heads = 0, kv_heads = 0, width = 0;  // query heads, key/value heads, width of one head
  double scale = 1;                          // of the scores: 1 / sqrt(width)
};

/// Names the random numbers of an initial state: a value depends on (seed, step, the sequence's key, position, feature) alone.
struct state_key {
  seed of;
  std::uint64_t step = 0;
  double scale = 1;  // of random states (init_scale); 0 gives zeros: the switch for determinism
};

GYRE_END
