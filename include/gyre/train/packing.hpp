// Training text: documents packed into rows of equal length (recurrent_depth, section 2), and the order in which rows are read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/core/random_sequence.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// What happens to the rest of a document that does not fit into its row.
enum class packing {
  drop_tail,  // it is dropped, so that every row begins at a document's start (as published)
  keep_tail,  // it opens the next row: nothing but an incomplete last row is lost; for texts that are one long document
};

/// Documents, one after the other, cut into rows of context + 1 tokens that do not overlap; an incomplete last row is dropped.
/// A row's inputs are its first `context` tokens and its targets the last `context`. Positions count from the row's start, and
/// attention crosses documents within a row. Owns its tokens.
class packed_rows {
 public:
  /// Throws when `context` is below 1 or the documents fill no row.
  packed_rows(std::span<const std::span<const token>> documents, index context, packing rule)
      : context_(checked(context)), width_(static_cast<std::size_t>(context) + 1) {
    std::size_t given = 0;
    for (const auto document : documents) given += document.size();
    tokens_.reserve(given);
    for (const auto document : documents) {
      const std::size_t room = width_ - tokens_.size() % width_;
      const std::size_t taken = rule == packing::keep_tail ? document.size() : (std::min)(document.size(), room);
      tokens_.insert(tokens_.end(), document.begin(), document.begin() + static_cast<std::ptrdiff_t>(taken));
    }
    drop_incomplete(given);
  }
  /// One document, keep_tail.
  packed_rows(std::span<const token> document, index context)
      : packed_rows(std::span<const std::span<const token>>(&document, 1), context, packing::keep_tail) {}

  index count() const { return static_cast<index>(tokens_.size() / width_); }
  index context() const { return context_; }
  /// All context + 1 tokens of a row.
  std::span<const token> operator[](index row) const {
    require(row >= 0 && row < count(), "packed_rows: row ", row, " of ", count());
    return std::span(tokens_).subspan(static_cast<std::size_t>(row) * width_, width_);
  }
  std::span<const token> inputs(index row) const { return (*this)[row].first(width_ - 1); }
  std::span<const token> targets(index row) const { return (*this)[row].last(width_ - 1); }

 private:
  static index checked(index context) {
    require(context >= 1, "packed_rows: context is ", context, "; a row needs at least one input and one target");
    return context;
  }
  void drop_incomplete(std::size_t given) {
    require(tokens_.size() >= width_, "packed_rows: ", given, " tokens fill no row of ", width_,
            " (context + 1); give more text or a shorter context");
    tokens_.resize(tokens_.size() - tokens_.size() % width_);
  }

  index context_;
  std::size_t width_;  // context + 1
  std::vector<token> tokens_;
};

/// Where a training stands in its data: the next row to read is number `row` of the order of `epoch`.
struct data_position {
  std::uint64_t epoch = 0;
  index row = 0;
  constexpr bool operator==(const data_position&) const = default;
};

/// Reads the rows 0 .. count - 1 once per epoch, each epoch in an order of its own, which depends on (seed, epoch) alone. So a
/// data_position is all that a resumed training needs.
class row_order {
 public:
  /// Throws when there are no rows or `start` is outside of them.
  row_order(index count, seed s, data_position start = {}) : stream_(s, purpose::data_order) {
    require(count >= 1, "row_order: ", count, " rows; there is nothing to read");
    order_.resize(static_cast<std::size_t>(count));
    seek(start);
  }

  /// The next row to read.
  index next() {
    const index row = order_[static_cast<std::size_t>(position_.row)];
    if (++position_.row == static_cast<index>(order_.size())) seek({position_.epoch + 1, 0});
    return row;
  }
  data_position position() const { return position_; }
  void seek(data_position to) {
    require(to.row >= 0 && to.row < static_cast<index>(order_.size()), "row_order: row ", to.row, " of epoch ", to.epoch,
            " is asked for, but there are ", order_.size(), " rows; the text is not the one of the saved training");
    position_ = to;
    random_sequence(stream_, to.epoch).permutation(std::span(order_));
  }

 private:
  random_stream stream_;
  std::vector<index> order_;  // of position_.epoch
  data_position position_;
};

GYRE_END
