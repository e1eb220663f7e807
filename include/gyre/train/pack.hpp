// Batches out of packed text: the range that a training loop walks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <gyre/train/batch.hpp>
#include <gyre/train/packing.hpp>

GYRE_BEGIN

/// How batches are read from rows.
struct reading {
  gyre::seed seed{};         // of the order of rows, a new one each epoch
  std::uint64_t epochs = 1;  // 0: without end
  data_position start{};     // where a resumed training goes on
};

/// Batches of `size` rows in the shuffled order of the epochs; batches cross from one epoch to the next, and only the last one
/// may be smaller. A range that is walked once at a time: begin() goes back to the start. Batches are valid until the next one.
class batches {
 public:
  batches(packed_rows rows, index size, reading how = {})
      : rows_(std::move(rows)), size_(size), how_(how), order_(rows_.count(), how.seed, how.start) {
    require(size >= 1, "batches: ", size, " rows to a batch; at least 1 is needed");
    require(size <= (index{1} << 40) / rows_.context(), "batches: ", size, " rows of ", rows_.context(), " tokens to a batch");
    const auto tokens = static_cast<std::size_t>(size * rows_.context());
    inputs_.reserve(tokens), targets_.reserve(tokens);
  }

  class iterator {
   public:
    using value_type = batch;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;
    explicit iterator(batches* from = nullptr) : from_(from) {}
    const batch& operator*() const { return from_->current_; }
    iterator& operator++() { return from_->advance(), *this; }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return from_->current_.rows == 0; }

   private:
    batches* from_;
  };
  iterator begin() {
    order_.seek(how_.start);
    advance();
    return iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }

  /// Where a training goes on that has used the current batch: `start` of a later reading.
  data_position position() const { return order_.position(); }
  const packed_rows& rows() const { return rows_; }

 private:
  void advance() {
    inputs_.clear(), targets_.clear();
    index taken = 0;
    for (; taken < size_ && (how_.epochs == 0 || order_.position().epoch < how_.epochs); ++taken) {
      const index row = order_.next();
      const std::span<const token> in = rows_.inputs(row), out = rows_.targets(row);
      inputs_.insert(inputs_.end(), in.begin(), in.end());
      targets_.insert(targets_.end(), out.begin(), out.end());
    }
    current_ = {inputs_, targets_, taken, rows_.context()};
  }

  packed_rows rows_;
  index size_;
  reading how_;
  row_order order_;
  std::vector<token> inputs_, targets_;
  batch current_;
};

/// Batches of `rows` rows of `length` tokens out of one text; its tail opens the next row. `text` is copied.
inline batches pack(std::span<const token> text, index rows, index length, reading how = {}) {
  return batches(packed_rows(text, length), rows, how);
}

GYRE_END
