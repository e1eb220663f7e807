// Ragged batches: tokens of several sequences in one list of rows, each with its place in its sequence.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// One sequence's share of a batch: rows [begin, begin + count) hold its positions past .. past + count - 1.
struct sequence_span {
  index begin = 0, count = 0, past = 0;
  std::uint64_t key = 0;  // the sequence's own number: keys its random streams, whatever the batch around it
};

/// Which row belongs to which sequence and position. Packed training rows, prefill, decode and mixtures of them are the same
/// thing to every operation. Grows to the largest batch it has held and allocates nothing after that.
class batch_layout {
 public:
  void clear() { spans_.clear(), positions_.clear(); }
  void reserve(index sequences, index tokens) {
    spans_.reserve(static_cast<std::size_t>(sequences)), positions_.reserve(static_cast<std::size_t>(tokens));
  }
  void add(index count, index past, std::uint64_t key) {
    require(count >= 0 && past >= 0 && past <= most_positions - (std::min)(count, most_positions),
            "batch_layout: a sequence of ", count, " tokens after ", past);
    spans_.push_back({rows(), count, past, key});
    for (index i = 0; i < count; ++i) positions_.push_back(static_cast<std::int32_t>(past + i));
  }
  /// `sequences` rows of equal length from position 0, as packed training data has them; keys count from `first_key`.
  static batch_layout uniform(index sequences, index length, std::uint64_t first_key = 0) {
    batch_layout layout;
    layout.assign_uniform(sequences, length, first_key);
    return layout;
  }
  void assign_uniform(index sequences, index length, std::uint64_t first_key = 0) {
    clear();
    for (index i = 0; i < sequences; ++i) add(length, 0, first_key + static_cast<std::uint64_t>(i));
  }

  index rows() const { return static_cast<index>(positions_.size()); }
  std::span<const sequence_span> sequences() const { return spans_; }
  std::span<const std::int32_t> positions() const { return positions_; }

 private:
  static constexpr index most_positions = (std::numeric_limits<std::int32_t>::max)();

  std::vector<sequence_span> spans_;
  std::vector<std::int32_t> positions_;  // (rows)
};

GYRE_END
