// What a round of generation leaves for the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <gyre/core/types.hpp>

GYRE_BEGIN

namespace detail {

/// What a round leaves, valid until the next.
template <class S>
struct round_result {
  matrix_view<const S> logits;          // (shares that want them, vocabulary), in their order
  std::span<const std::int32_t> steps;  // (tokens) steps run
  std::span<const S> losses;            // (tokens) with targets: cross-entropies
  std::span<const token> chosen;        // (shares that want logits) where these say how tokens are drawn; -1 without a softmax
  std::span<const double> log_probabilities;  // likewise: of `chosen`, under the softmax of the logits as they came
};

/// Rounds whose rows could not run together, one after the other as if they had.
template <class S>
class collected_rounds {
 public:
  void clear() { logits_.clear(), losses_.clear(), steps_.clear(), chosen_.clear(), log_probabilities_.clear(); }
  void append(const round_result<S>& round) {
    const auto add = [](auto& all, auto more) { all.insert(all.end(), more.begin(), more.end()); };
    if (round.logits.rows > 0) add(logits_, std::span(round.logits[0], static_cast<std::size_t>(round.logits.size())));
    add(losses_, round.losses), add(steps_, round.steps), add(chosen_, round.chosen);
    add(log_probabilities_, round.log_probabilities);
  }
  round_result<S> result(index vocabulary) const {
    const index rows = static_cast<index>(logits_.size()) / vocabulary;
    return {{logits_.data(), rows, vocabulary}, steps_, losses_, chosen_, log_probabilities_};
  }

 private:
  std::vector<S> logits_, losses_;
  std::vector<std::int32_t> steps_;
  std::vector<token> chosen_;
  std::vector<double> log_probabilities_;
};

}  // namespace detail

GYRE_END
