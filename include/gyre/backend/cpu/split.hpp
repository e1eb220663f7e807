// How operations on rows are shared out to the threads.
#pragma once

#include <algorithm>

#include <gyre/backend/cpu/pool.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

namespace detail {

/// Work below this runs on the calling thread: waking the others would take longer. In elements that are read, added to and
/// written once.
inline constexpr index inline_work = 16384;

/// f(first, count) for ranges that cover [0, rows), each of at least `grain` rows (but the last) and about inline_work of work;
/// `cost`: work of one row. For operations whose rows do not depend on each other, so that the split cannot be seen.
template <class F>
void for_rows(thread_pool& pool, index rows, index cost, F f, index grain = 1) {
  if (rows <= 0) return;
  const index step = (std::max)(grain, inline_work / (std::max)(cost, index{1}));
  if (rows <= step || pool.threads() == 1) return f(index{0}, rows);
  pool.run((rows + step - 1) / step, [&](index task, int) { f(task * step, (std::min)(step, rows - task * step)); });
}

/// Rows of one partial sum where rows are summed. A constant: the sums must not depend on the number of threads.
inline constexpr index rows_per_sum = 64;
constexpr index partial_sums(index rows) { return (rows + rows_per_sum - 1) / rows_per_sum; }

/// sum[j] += the partial sums partial(partials, cols), in their order.
template <class T>
void add_partial_sums(thread_pool& pool, const T* partial, index partials, index cols, T* sum) {
  constexpr index step = 64;  // columns at a time
  for_rows(pool, (cols + step - 1) / step, partials * step, [&](index first, index count) {
    const index end = (std::min)(cols, (first + count) * step);
    for (index p = 0; p < partials; ++p)
      for (index j = first * step; j < end; ++j) sum[j] += partial[p * cols + j];
  });
}

}  // namespace detail

GYRE_END
