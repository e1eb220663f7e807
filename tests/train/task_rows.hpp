// Rows of a task, full of what no task writes.
#pragma once

#include <cstddef>
#include <vector>

#include <gyre/core/types.hpp>

namespace gyre_test {

template <std::size_t Length>
struct task_rows {
  std::vector<gyre::token> inputs, targets;
  explicit task_rows(std::size_t count) : inputs(count * Length, -5), targets(count * Length, -5) {}
};

}  // namespace gyre_test
