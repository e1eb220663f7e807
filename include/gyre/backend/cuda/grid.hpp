// How many blocks a launch takes: on the host.
#pragma once

#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>
#include <gyre/simt.hpp>

GYRE_BEGIN

namespace detail {

/// Blocks of `threads` threads for `items` threads in all. Throws gyre::error for more than a grid has.
inline dim3 blocks_for(index items, unsigned threads) {
  constexpr index most = (index{1} << 31) - 1;
  const index blocks = (items + static_cast<index>(threads) - 1) / static_cast<index>(threads);
  require(blocks <= most, "cuda: ", items, " pieces of work are ", blocks, " blocks of ", threads, "; a grid has at most ",
          most, ". Give fewer rows at a time");
  return dim3(static_cast<unsigned>(blocks));
}

}  // namespace detail

GYRE_END
