// The tasks of the mixtures demo and the experiments as data of a session: prefix products of permutations, and k hops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gyre/train/k_hops.hpp>
#include <gyre/train/permutations.hpp>

#include "training_data.hpp"

namespace examples {

/// Fresh rows for every step, so there is no position to keep; held-out rows come from another stream of random numbers.
class task_data : public training_data {
 public:
  task_data(std::string name, gyre::index rows, gyre::index length, gyre::seed seed)
      : name_(std::move(name)), rows_(rows), length_(length), seed_(seed) {
    gyre::require(rows >= 1, "the task ", name_, ": ", rows, " rows to a batch; at least 1 is needed");
  }

  gyre::index rows() const override { return rows_; }
  gyre::index length() const override { return length_; }
  /// Targets that count in a row.
  virtual gyre::index answers() const = 0;
  gyre::batch next(std::uint64_t step, std::uint32_t part, int) override {
    make(inputs_, targets_, 0, step, part * static_cast<std::uint32_t>(rows_), rows_);
    return {inputs_, targets_, rows_, length_};
  }
  gyre::json position() const override { return gyre::json::object(); }
  void seek(const gyre::json_field&) override {}
  /// The same rows every time, unless `examination` asks for others.
  std::span<const gyre::batch> held_out(int, gyre::index tokens) override { return held_out_rows(rows_of(tokens), 0); }
  /// `rows` rows that neither training nor another examination sees, in batches of bounded size. Valid until the next call.
  std::span<const gyre::batch> held_out_rows(gyre::index rows, std::uint64_t examination) {
    make(held_inputs_, held_targets_, 1, examination, 0, rows);
    held_batches_.clear();
    const gyre::index most = (std::max)(gyre::index{1}, 4096 / length_);
    for (gyre::index first = 0; first < rows; first += most) {
      const gyre::index count = (std::min)(most, rows - first);
      const auto part = [&](const std::vector<gyre::token>& of) {
        return std::span(of).subspan(static_cast<std::size_t>(first * length_), static_cast<std::size_t>(count * length_));
      };
      held_batches_.push_back({part(held_inputs_), part(held_targets_), count, length_});
    }
    return held_batches_;
  }
  /// Answers cannot be told from chance before a task is learned, at any depth.
  bool depth_should_help() const override { return false; }
  std::string unit() const override { return "answer"; }
  gyre::json identity() const override {
    gyre::json out = gyre::json::object();
    out.set("task", name_), out.set("length", length_);
    return out;
  }

 protected:
  virtual void fill(const gyre::random_stream& stream, std::uint64_t step, std::uint32_t first_row,
                    std::span<gyre::token> inputs, std::span<gyre::token> targets) const = 0;

 private:
  gyre::index rows_of(gyre::index tokens) const { return tokens == 0 ? 512 : (std::max)(gyre::index{1}, tokens / answers()); }
  void make(std::vector<gyre::token>& inputs, std::vector<gyre::token>& targets, std::uint64_t stream, std::uint64_t step,
            std::uint32_t first_row, gyre::index rows) const {
    inputs.resize(static_cast<std::size_t>(rows * length_)), targets.resize(inputs.size());
    fill(gyre::random_stream(seed_, gyre::purpose::task, stream), step, first_row, inputs, targets);
  }

  std::string name_;
  gyre::index rows_, length_;
  gyre::seed seed_;
  std::vector<gyre::token> inputs_, targets_, held_inputs_, held_targets_;
  std::vector<gyre::batch> held_batches_;
};

class permutations_data final : public task_data {
 public:
  using drawn_from = gyre::permutations_task::drawn_from;
  permutations_data(gyre::index rows, gyre::index length, gyre::seed seed, drawn_from elements = drawn_from::all)
      : task_data(elements == drawn_from::all ? "permutations" : "swaps", rows, length, seed), elements_(elements) {
    const gyre::index least = 1 + silent();
    gyre::require(length >= least && length <= gyre::permutations_task::most_length, "the task ",
                  elements == drawn_from::all ? "permutations" : "swaps", ": rows of ", length, " elements; ", least, " to ",
                  gyre::permutations_task::most_length, " are possible");
  }
  gyre::index answers() const override { return length() - silent(); }

 private:
  void fill(const gyre::random_stream& stream, std::uint64_t step, std::uint32_t first_row, std::span<gyre::token> inputs,
            std::span<gyre::token> targets) const override {
    gyre::permutations_task::fill(stream, step, first_row, static_cast<int>(length()), inputs, targets, elements_);
  }
  gyre::index silent() const { return elements_ == drawn_from::swaps; }  // the identity that begins a row

  drawn_from elements_;
};

class k_hops_data final : public task_data {
 public:
  using task = gyre::k_hops_task;
  k_hops_data(gyre::index rows, gyre::seed seed, int questions = task::most_questions)
      : task_data("k-hops", rows, task::length_of(questions), seed), questions_(questions) {}
  gyre::index answers() const override { return questions_; }

 private:
  void fill(const gyre::random_stream& stream, std::uint64_t step, std::uint32_t first_row, std::span<gyre::token> inputs,
            std::span<gyre::token> targets) const override {
    task::fill(stream, step, first_row, inputs, targets, questions_);
  }

  int questions_;
};

inline const std::vector<std::string>& task_names() {
  static const std::vector<std::string> names{"swaps", "k-hops", "permutations"};
  return names;
}
/// A task by its name; `length` is of rows of swaps and permutations, for k hops it has no meaning.
inline std::unique_ptr<task_data> make_task(std::string_view name, gyre::index rows, gyre::index length, gyre::seed seed) {
  if (name == "permutations") return std::make_unique<permutations_data>(rows, length, seed);
  if (name == "swaps") return std::make_unique<permutations_data>(rows, length, seed, permutations_data::drawn_from::swaps);
  if (name == "k-hops") return std::make_unique<k_hops_data>(rows, seed);
  gyre::fail("no task is named '", name, "'; there are swaps, k-hops and permutations");
}

}  // namespace examples
