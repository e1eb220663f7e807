// Shapes and options that operations take beside their views.
#pragma once

#include <cstdint>

#include <gyre/core/error.hpp>
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

/// Rows that lie group after group, each group with a weight matrix of its own: rows of group g are [offsets[g], offsets[g + 1])
/// and its matrix lies g * stride scalars behind group 0's. Groups may be empty.
struct row_groups {
  const std::int32_t* offsets = nullptr;  // (count + 1), ascending from 0 to the number of rows; memory of the device
  index count = 0;
  index stride = 0;  // scalars from one group's matrix to the next's, in the flat buffer of parameters or gradients
};

/// Names the random numbers of an initial state: a value depends on (seed, step, the sequence's key, position, feature) alone.
struct state_key {
  seed of;
  std::uint64_t step = 0;
  double scale = 1;  // of random states (init_scale); 0 gives zeros: the switch for determinism
};

namespace detail {

/// C (rows, cols) = A B: what the factors' sizes must be.
template <class T>
void check_product(const char* call, matrix_view<T> c, index rows, index depth_a, index depth_b, index cols) {
  if (c.rows != rows || c.cols != cols || depth_a != depth_b)
    fail(call, ": result ", c.rows, " x ", c.cols, " of factors ", rows, " x ", depth_a, " and ", depth_b, " x ", cols);
}

/// For backends whose operations read the offsets on the host. Returns how many groups have rows.
inline index check_row_groups(const char* call, row_groups groups, index rows) {
  if (groups.count < 0 || (groups.count > 0 && groups.offsets == nullptr))
    fail(call, ": ", groups.count, " groups", groups.count > 0 ? " without offsets" : "");
  const std::int32_t* const at = groups.offsets;
  const index first = groups.count > 0 ? at[0] : 0, last = groups.count > 0 ? at[groups.count] : 0;
  if (first != 0 || last != rows)
    fail(call, ": the groups' offsets go from ", first, " to ", last, ", but the operands have rows 0 to ", rows);
  index used = 0;
  for (index g = 0; g < groups.count; ++g) {
    if (at[g + 1] < at[g]) fail(call, ": offsets of group ", g, " descend, from ", at[g], " to ", at[g + 1]);
    used += at[g + 1] > at[g];
  }
  return used;
}

}  // namespace detail

GYRE_END
