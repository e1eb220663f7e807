// What routing takes beside its views, and what it refuses.
#pragma once

#include <cstdint>
#include <limits>

#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// Weights of the optional losses of a router (attention_mixtures, section 4): `balance` is alpha of the sequence-wise balance
/// loss, `z` is beta of the z-loss. Both losses are sums over tokens.
struct router_loss_weights {
  double balance = 0, z = 0;
};

namespace detail {

inline void check_active(const char* call, index active, index experts) {
  require(active >= 1 && active <= experts, call, ": ", active, " active of ", experts,
          " experts; a row needs at least 1 and at most all of them");
}
inline void check_pairs(index pairs) {
  require(pairs <= (std::numeric_limits<std::int32_t>::max)(), "group_pairs: ", pairs,
          " pairs of a row and an expert; at most ", (std::numeric_limits<std::int32_t>::max)(),
          " fit the 32-bit places: route fewer rows at a time");
}
inline void check_chosen(index pair, std::int32_t expert, index experts) {
  require(expert >= 0 && expert < experts, "group_pairs: pair ", pair, " names expert ", expert, " of ", experts);
}
inline void check_layout(const char* call, index rows, index layout_rows) {
  require(rows == layout_rows, call, ": ", rows, " rows of scores for a layout of ", layout_rows);
}

}  // namespace detail

GYRE_END
