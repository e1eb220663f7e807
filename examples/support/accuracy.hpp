// How often a model's most likely token is the right one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <gyre/model/pass.hpp>
#include <gyre/train/batch.hpp>

#include "training.hpp"

namespace examples {

/// Counts right answers of a network. Keeps its memory, so that one meter may measure many times.
template <class Network>
class accuracy_meter {
 public:
  explicit accuracy_meter(const Network& net) : net_(&net), memory_(net.device()) {}

  /// Runs `depth` steps on all rows. A target counts where it is not negative; of equally likely tokens the lower is the answer.
  accuracy measure(std::span<const gyre::batch> batches, int depth) {
    accuracy result;
    gyre::index right = 0, right_last = 0;
    for (const gyre::batch& b : batches) {
      constexpr gyre::index vocabulary = Network::architecture_type::shape.vocab;
      const gyre::index tokens = b.rows * b.length;
      const auto bytes = static_cast<std::size_t>(tokens * vocabulary) * sizeof(float);
      if (!logits_ || logits_->size() < bytes) logits_.emplace(net_->device(), bytes);
      const float* const logits = logits_->template as<float>();
      gyre::run_logits(*net_, memory_, gyre::batch_layout::uniform(b.rows, b.length), b.inputs, {}, depth,
                       gyre::matrix_view<float>(logits_->template as<float>(), tokens, vocabulary));
      for (gyre::index row = 0; row < b.rows; ++row) {
        bool last_right = false, any = false;
        for (gyre::index i = row * b.length; i < (row + 1) * b.length; ++i) {
          const gyre::token target = b.targets[static_cast<std::size_t>(i)];
          if (target < 0) continue;
          const float* const scores = logits + i * vocabulary;
          last_right = std::max_element(scores, scores + vocabulary) - scores == target, any = true;
          right += last_right, ++result.answers;
        }
        right_last += last_right, result.rows += any;
      }
    }
    gyre::require(result.rows > 0, "accuracy_meter: no target counts in these batches");
    result.all = static_cast<double>(right) / static_cast<double>(result.answers);
    result.last = static_cast<double>(right_last) / static_cast<double>(result.rows);
    return result;
  }

 private:
  const Network* net_;
  gyre::pass_memory<typename Network::backend_type> memory_;
  std::optional<gyre::device_buffer<typename Network::backend_type>> logits_;  // the device's, which the host may read
};

}  // namespace examples
