// A model in training behind an interface, so that the loop around it is compiled once and not for every model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <gyre/train/checkpoint.hpp>
#include <gyre/train/evaluate.hpp>
#include <gyre/train/trainer.hpp>

namespace examples {

/// Shares of right answers on some rows.
struct accuracy {
  double all = 0, last = 0;           // of all targets that count; of the last one in each row
  gyre::index answers = 0, rows = 0;  // targets that count; rows that have any
};

/// What a training loop needs of a network and its trainer; see gyre::trainer for the meaning.
class training {
 public:
  virtual ~training() = default;
  training() = default;
  training(const training&) = delete;
  training& operator=(const training&) = delete;

  virtual gyre::depth_draw next_depth() const = 0;
  virtual void accumulate(const gyre::batch& rows) = 0;
  virtual gyre::step_report update() = 0;
  virtual std::uint64_t steps() const = 0;
  virtual std::uint64_t tokens_seen() const = 0;
  virtual const gyre::trainer_options& options() const = 0;

  /// Those of `depths` that were done when `stop` said so.
  virtual std::vector<gyre::evaluation> evaluate(std::span<const gyre::batch> rows, std::span<const int> depths,
                                                 const std::function<bool()>& stop = {}) const = 0;
  /// How often the most likely token is the right one; nothing where nobody asks that of a model.
  virtual std::optional<accuracy> accuracy_on(std::span<const gyre::batch>, int /*depth*/) const { return std::nullopt; }
  virtual std::filesystem::path save(const std::filesystem::path& run, const gyre::json& data) const = 0;
  virtual gyre::resumed load(const std::filesystem::path& checkpoint) = 0;

  virtual int vocabulary() const = 0;
  virtual int context() const = 0;
  virtual int most_depth() const = 0;  // of the depth rule
  virtual gyre::index parameters() const = 0;
  /// FLOPs of a micro-batch of this size with these steps, backward included.
  virtual double flops(gyre::index rows, gyre::index length, gyre::depth_draw draw) const = 0;
  /// Bytes that steps over micro-batches of this size take beside weights, gradients and moments; they are taken now.
  virtual std::size_t plan(gyre::index rows, gyre::index length) = 0;
};

}  // namespace examples
