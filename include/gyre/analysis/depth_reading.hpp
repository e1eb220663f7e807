// Which depth reads which: the mean weights of depth attention.
#pragma once

#include <cmath>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/core/pass_observer.hpp>

GYRE_BEGIN

/// Collects the weights of one depth attention while a model is evaluated; memory of the events must be the host's.
template <precision P>
class depth_reading final : public pass_observer<P> {
 public:
  /// `layer`: place of the layer's first parameter in the flat buffer; -1: the only depth attention of the model.
  explicit depth_reading(index layer = -1) : layer_(layer) {}

  void read_depths(const depth_reading_event<P>& event) override {
    if (layer_ >= 0 && event.layer != layer_) return;
    if (seen_ < 0) seen_ = event.layer;
    require(event.layer == seen_, "depth_reading: the model has several depth attentions (at ", seen_, " and ", event.layer,
            " of its parameters); say which to watch");
    if (event.step >= depths()) grow(event.step + 1);
    const index rows = event.queries.rows, d = event.heads.width, group = event.heads.heads / event.heads.kv_heads;
    if (rows == 0) return;
    for (index i = 0; i < rows; ++i)
      for (index h = 0; h < event.heads.heads; ++h) {
        const auto* q = event.queries[i] + h * d;
        for (index j = 0; j < event.keys.rows / rows; ++j) {
          const auto* k = event.keys[j * rows + i] + h / group * d;
          double score = 0;
          for (index c = 0; c < d; ++c) score += static_cast<double>(q[c]) * static_cast<double>(k[c]);
          const double lse = static_cast<double>(event.lse[i * event.heads.heads + h]);
          sums_[static_cast<std::size_t>(event.step)][static_cast<std::size_t>(j)] += std::exp(event.heads.scale * score - lse);
        }
      }
    counts_[static_cast<std::size_t>(event.step)] += static_cast<double>(rows * event.heads.heads);
  }

  index depths() const { return static_cast<index>(sums_.size()); }
  /// Mean weight, over tokens and heads, with which depth `reader` reads depth `read`; 0 for depths that it does not see.
  double weight(index reader, index read) const {
    const auto r = static_cast<std::size_t>(reader);
    return counts_[r] > 0 ? sums_[r][static_cast<std::size_t>(read)] / counts_[r] : 0;
  }

 private:
  void grow(index depths) {
    const auto n = static_cast<std::size_t>(depths);
    sums_.resize(n), counts_.resize(n);
    for (auto& row : sums_) row.resize(n);
  }

  index layer_, seen_ = -1;
  std::vector<std::vector<double>> sums_;  // (reader, read)
  std::vector<double> counts_;             // (reader): tokens times heads
};

GYRE_END
