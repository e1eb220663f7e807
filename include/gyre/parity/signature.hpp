// Operands of every operation: which arguments are read, which are written, and how large they are. One list serves everything
// that must know them: the comparison of backends, recordings, files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <gyre/core/context.hpp>
#include <gyre/ops/operations.hpp>
#include <gyre/ops/routing.hpp>
#include <gyre/ops/shapes.hpp>
#include <gyre/ops/updates.hpp>

GYRE_BEGIN
namespace parity {

/// signature<Op>::map(visitor, arguments...) returns the arguments of another call as a tuple: operands are what the visitor gives
/// for them, everything else stays. signature<Op>::call(backend, arguments...) calls. Operands have the names of the contract.
/// A visitor V has
///   backend                                the backend that will be called: it says how large workspaces are
///   input(name, view), input(name, pointer, count)         read only; pointers may be null
///   output(...)                            assigned: the old content is not read
///   updated(...)                           in place, or accumulated
///   accumulated(..., bool)                 updated if true, output if not
///   weight(name, weight_matrix[, groups]), weight_gradient(name, view, groups), groups(row_groups)
///   lanes(name, lanes, scalars a token, written)
///   host(name, span), host(name, pointer, count)           read by the host
///   scalar(value), workspace(pointer, count)
template <operation Op>
struct signature;

namespace detail {

/// Scalars of a rotary table as far as `positions` read it.
inline index table_size(std::span<const std::int32_t> positions, rotary_shape shape) {
  const auto last = std::max_element(positions.begin(), positions.end());
  return last == positions.end() ? 0 : (index{*last} + 1) * shape.width;
}
/// Scalars a token, from the cursor on, that cache_extend reads and writes.
inline index extent(std::span<const std::int32_t> copies, std::span<const index> blocks, index stride) {
  index most = 0, width = 0;
  for (const std::int32_t n : copies) most = (std::max)(most, index{n});
  for (const index block : blocks) width += block;
  return stride * most + width;
}

}  // namespace detail
}  // namespace parity
GYRE_END
