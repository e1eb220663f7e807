// What the trainer reads.
#pragma once

#include <span>

#include <gyre/core/types.hpp>

GYRE_BEGIN

/// Rows of tokens with what each of them should predict: a view, valid as long as its source says. Every row starts at
/// position 0. Negative targets do not count.
struct batch {
  std::span<const token> inputs, targets;  // (rows, length)
  index rows = 0, length = 0;
};

GYRE_END
