// What a generator needs to choose tokens (recurrent_depth, section 5.6), and the functions that do it on the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gyre/backend/cpu/sampling.hpp>
#include <gyre/core/random.hpp>
#include <gyre/core/types.hpp>
#include <gyre/ops/sampling.hpp>

GYRE_BEGIN

/// The uniform number in [0, 1) that draws the token at `position` of `sequence`: the same whatever else is in the batch.
inline double sampling_uniform(seed s, std::uint64_t sequence, std::uint64_t position) {
  return random_stream(s, purpose::sampling).uniform(counter::of(sequence, position));
}

namespace detail {

/// The rows of one call of `sample`. Memory grows to the largest call and is then kept.
struct sampling_batch {
  std::vector<sampling_row> rows;
  std::vector<token> histories;

  std::size_t room = 0;  // tokens that the histories of these rows may come to have

  void clear() { rows.clear(), histories.clear(), room = 0; }
  /// Keeps a copy of the history if anything reads it. `most_history`: what it may grow to in later calls.
  void add(const sampling& rules, std::span<const token> history, index most_history, double uniform, bool id_only = false) {
    if (rules.repetition_penalty == 1) history = {}, most_history = 0;
    rows.push_back({rules, uniform, std::ssize(histories), std::ssize(history), id_only});
    room += (std::max)(history.size(), static_cast<std::size_t>(most_history));
    histories.reserve(room);
    histories.insert(histories.end(), history.begin(), history.end());
  }
};

}  // namespace detail

GYRE_END
