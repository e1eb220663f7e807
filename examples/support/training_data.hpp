// What a session trains on: text files with their end held out, or the hops task.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gyre/core/random_sequence.hpp>
#include <gyre/io/byte_tokens.hpp>
#include <gyre/io/files.hpp>
#include <gyre/io/json_field.hpp>
#include <gyre/train/batch.hpp>
#include <gyre/train/hops.hpp>
#include <gyre/train/packing.hpp>

namespace examples {

/// Batches for training and for validation. Where it stands is a JSON value that a checkpoint keeps.
class training_data {
 public:
  virtual ~training_data() = default;
  training_data() = default;
  training_data(const training_data&) = delete;
  training_data& operator=(const training_data&) = delete;

  virtual gyre::index rows() const = 0;    // of a batch
  virtual gyre::index length() const = 0;  // tokens of a row
  /// The next batch, micro-batch `part` of optimiser step `step`, valid until the next call; `depth` is the steps it will run.
  virtual gyre::batch next(std::uint64_t step, std::uint32_t part, int depth) = 0;
  virtual gyre::json position() const = 0;
  virtual void seek(const gyre::json_field& position) = 0;

  /// Held-out batches of about `tokens` counted tokens (0: all there are), for a validation at `depth` steps; none if nothing is
  /// held out. Valid until the next call.
  virtual std::span<const gyre::batch> held_out(int depth, gyre::index tokens) = 0;
  /// Whether more steps than one should help on held-out data from the beginning of learning on.
  virtual bool depth_should_help() const = 0;
  /// What identifies the data: a resumed training must find the same.
  virtual gyre::json identity() const = 0;
  /// What a counted token is: "byte".
  virtual std::string unit() const = 0;
};

/// Text files as bytes, each a document that begins with bos; the last `hold_out` bytes of all are for validation.
class text_data final : public training_data {
 public:
  struct options {
    gyre::index rows = 8, length = 128;
    gyre::packing rule = gyre::packing::keep_tail;
    std::size_t hold_out = 200000;  // bytes; at most a tenth of the text
    gyre::seed seed{};              // of the order of rows
  };

  text_data(const std::vector<std::string>& paths, options wanted) : wanted_(wanted) {
    gyre::require(!paths.empty(), "no text is given");
    gyre::require(wanted.rows >= 1 && wanted.length >= 1, wanted.rows, " rows of ", wanted.length,
                  " tokens to a batch; both must be at least 1");
    std::vector<std::string> texts;
    std::size_t total = 0;
    for (const std::string& path : paths) {
      texts.push_back(gyre::read_file(path));
      const std::string& text = texts.back();
      gyre::require(!text.empty(), path, " is empty; there is no text to read");
      gyre::json file = gyre::json::object();
      file.set("bytes", text.size()), file.set("crc32", checksum(text));
      files_.push_back(std::move(file));
      total += text.size();
    }
    gyre::require(total / 10 > static_cast<std::size_t>(wanted.length), "the text has ", total, " bytes; with rows of ",
                  wanted.length, " at least ", 10 * (wanted.length + 1), " are needed");
    held_bytes_ = (std::min)(wanted.hold_out, total / 10);
    train_bytes_ = total - held_bytes_;
    split(texts, held_bytes_);
  }

  std::size_t train_bytes() const { return train_bytes_; }
  std::size_t held_bytes() const { return held_bytes_; }

  gyre::index rows() const override { return wanted_.rows; }
  gyre::index length() const override { return wanted_.length; }
  gyre::batch next(std::uint64_t, std::uint32_t, int) override {
    inputs_.clear(), targets_.clear();
    for (gyre::index i = 0; i < wanted_.rows; ++i) {
      const gyre::index row = order_->next();
      inputs_.insert(inputs_.end(), rows_->inputs(row).begin(), rows_->inputs(row).end());
      targets_.insert(targets_.end(), rows_->targets(row).begin(), rows_->targets(row).end());
    }
    return {inputs_, targets_, wanted_.rows, wanted_.length};
  }
  gyre::json position() const override {
    gyre::json out = gyre::json::object();
    out.set("epoch", order_->position().epoch), out.set("row", order_->position().row);
    return out;
  }
  void seek(const gyre::json_field& position) override {
    order_->seek({position["epoch"].uint64(), static_cast<gyre::index>(position["row"].int64())});
  }

  /// Rows spread evenly over the held-out text.
  std::span<const gyre::batch> held_out(int, gyre::index tokens) override {
    held_batches_.clear();
    if (held_ == nullptr) return held_batches_;
    const gyre::index length = wanted_.length, all = held_->count();
    const gyre::index rows = tokens == 0 ? all : (std::clamp)(tokens / length, gyre::index{1}, all);
    held_inputs_.clear(), held_targets_.clear();
    for (gyre::index i = 0; i < rows; ++i) {
      const gyre::index row = i * all / rows;
      held_inputs_.insert(held_inputs_.end(), held_->inputs(row).begin(), held_->inputs(row).end());
      for (const gyre::token t : held_->targets(row))  // a bos is no byte, so it does not count
        held_targets_.push_back(t == gyre::byte_tokens::bos ? -1 : t);
    }
    const gyre::index most = (std::max)(gyre::index{1}, 4096 / length);  // rows of a batch: bounds memory
    for (gyre::index first = 0; first < rows; first += most) {
      const gyre::index count = (std::min)(most, rows - first);
      const auto part = [&](const std::vector<gyre::token>& of) {
        return std::span(of).subspan(static_cast<std::size_t>(first * length), static_cast<std::size_t>(count * length));
      };
      held_batches_.push_back({part(held_inputs_), part(held_targets_), count, length});
    }
    return held_batches_;
  }
  bool depth_should_help() const override { return true; }
  std::string unit() const override { return "byte"; }
  gyre::json identity() const override {
    gyre::json out = gyre::json::object();
    out.set("texts", gyre::json::array(files_));
    return out;
  }

 private:
  static std::uint64_t checksum(const std::string& text) {
    return crc32_z(0, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }

  void split(const std::vector<std::string>& texts, std::size_t held) {
    std::vector<std::vector<gyre::token>> train, last;
    for (auto text = texts.rbegin(); text != texts.rend(); ++text) {
      const std::size_t cut = (std::min)(held, text->size());
      held -= cut;
      const std::string_view all(*text);
      if (cut > 0) last.push_back(gyre::byte_tokens::encode(all.substr(all.size() - cut), cut == all.size()));
      if (cut < all.size()) train.push_back(gyre::byte_tokens::encode(all.substr(0, all.size() - cut), true));
    }
    const auto pack = [&](std::vector<std::vector<gyre::token>>& documents, gyre::packing rule) {
      std::reverse(documents.begin(), documents.end());
      const std::vector<std::span<const gyre::token>> views(documents.begin(), documents.end());
      return std::make_unique<gyre::packed_rows>(views, wanted_.length, rule);
    };
    rows_ = pack(train, wanted_.rule);
    if (!last.empty()) held_ = pack(last, gyre::packing::keep_tail);
    order_ = std::make_unique<gyre::row_order>(rows_->count(), wanted_.seed);
  }

  options wanted_;
  std::vector<gyre::json> files_;
  std::size_t train_bytes_ = 0, held_bytes_ = 0;
  std::unique_ptr<gyre::packed_rows> rows_, held_;
  std::unique_ptr<gyre::row_order> order_;
  std::vector<gyre::token> inputs_, targets_, held_inputs_, held_targets_;
  std::vector<gyre::batch> held_batches_;
};

/// Fresh permutations for every step, with as many hops as the step has recurrence steps: nothing is ever repeated, so there is
/// no position to keep.
class hops_data final : public training_data {
 public:
  hops_data(gyre::index rows, gyre::seed seed) : rows_(rows), seed_(seed) {
    gyre::require(rows >= 1, "the hops task: ", rows, " rows to a batch; at least 1 is needed");
  }

  gyre::index rows() const override { return rows_; }
  gyre::index length() const override { return gyre::hops_task::length; }
  gyre::batch next(std::uint64_t step, std::uint32_t part, int depth) override {
    return fill(0, step, part * static_cast<std::uint32_t>(rows_), rows_, depth);
  }
  gyre::json position() const override { return gyre::json::object(); }
  void seek(const gyre::json_field&) override {}
  /// As many hops as steps, from permutations that training does not see.
  std::span<const gyre::batch> held_out(int depth, gyre::index tokens) override {
    const gyre::index rows = tokens == 0 ? 512 : (std::max)(gyre::index{1}, tokens / gyre::hops_task::nodes);
    shown_ = fill(1, 0, 0, rows, depth);
    return {&shown_, 1};
  }
  /// Where a pointer leads cannot be told apart from chance before the task is learned, at any depth.
  bool depth_should_help() const override { return false; }
  std::string unit() const override { return "answer"; }
  gyre::json identity() const override {
    gyre::json out = gyre::json::object();
    out.set("task", "hops");
    return out;
  }

 private:
  gyre::batch fill(std::uint64_t stream, std::uint64_t step, std::uint32_t first, gyre::index rows, int hops) {
    const auto tokens = static_cast<std::size_t>(rows * gyre::hops_task::length);
    inputs_.resize(tokens), targets_.resize(tokens);
    gyre::hops_task::fill(gyre::random_stream(seed_, gyre::purpose::task, stream), step, first, hops, inputs_, targets_);
    return {inputs_, targets_, rows, gyre::hops_task::length};
  }

  gyre::index rows_;
  gyre::seed seed_;
  std::vector<gyre::token> inputs_, targets_;
  gyre::batch shown_;
};

}  // namespace examples
