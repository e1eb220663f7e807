// How tokens are chosen from logits: what `sample` takes beside its views, and what it refuses.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// How a token is chosen. The steps run in this order, each on what the one before has left; ties go to the lower id:
///   1. repetition penalty  logits of tokens of prompt and output: positive ones divided, negative ones multiplied by it, once
///   2. temperature         logits are divided by it; 0 is greedy: the largest logit wins and the rest is skipped
///   3. softmax
///   4. top_k               the k most likely tokens stay; 0: all
///   5. top_p               in order of probability (not renormalised after top_k), tokens stay as long as the sum including
///                          them is at most top_p; the first always stays; 1: all
///   6. min_p               tokens less likely than min_p times the likeliest go; 0: none
///   7. renormalise, draw with one uniform number
struct sampling {
  float temperature = 1;         // >= 0
  float top_p = 1;               // in (0, 1]
  float min_p = 0;               // in [0, 1]
  float repetition_penalty = 1;  // > 0
  int top_k = 0;                 // >= 0
  bool greedy = false;

  /// Throws unless every field is in its range, naming the number.
  void validate() const {
    require(temperature >= 0 && std::isfinite(temperature), "sampling: temperature is ", temperature,
            "; it must be finite and not negative (0: greedy)");
    require(top_p > 0 && top_p <= 1, "sampling: top_p is ", top_p, "; it must lie in (0, 1] (1: off)");
    require(min_p >= 0 && min_p <= 1, "sampling: min_p is ", min_p, "; it must lie in [0, 1] (0: off)");
    require(repetition_penalty > 0 && std::isfinite(repetition_penalty), "sampling: repetition_penalty is ", repetition_penalty,
            "; it must be finite and positive (1: off)");
    require(top_k >= 0, "sampling: top_k is ", top_k, "; it must not be negative (0: off)");
  }
};

/// The choice from one row of logits, as a call of `sample` for many rows has it.
struct sampling_row {
  sampling rules{};
  double uniform = 0;                   // in [0, 1): draws the token
  index history = 0, history_size = 0;  // prompt and output lie in the call's histories from this token on; rows may share them
  bool id_only = false;                 // the log-probability is not wanted, as of a draft
};

namespace detail {

inline bool is_greedy(const sampling& rules) { return rules.greedy || rules.temperature == 0; }
inline bool is_penalised(const sampling_row& row) { return row.rules.repetition_penalty != 1 && row.history_size > 0; }
inline std::span<const token> history_of(const sampling_row& row, std::span<const token> histories) {
  return histories.subspan(static_cast<std::size_t>(row.history), static_cast<std::size_t>(row.history_size));
}

inline void check_uniform(double uniform) {
  require(uniform >= 0 && uniform < 1, "sample: the uniform number is ", uniform, "; it must lie in [0, 1)");
}
inline void check_history(token t, std::size_t vocabulary) {
  require(t >= 0 && static_cast<std::size_t>(t) < vocabulary, "sampling: the history holds token ", t,
          ", outside the vocabulary of ", vocabulary);
}
/// What the host can see of a call. Tokens of a history are looked at where there is a penalty.
inline void check_sampling(index rows, index vocabulary, std::span<const sampling_row> choices,
                           std::span<const token> histories) {
  require(rows == std::ssize(choices), "sample: ", rows, " rows of logits and ", choices.size(), " of rules");
  require(rows == 0 || vocabulary > 0, "sampling: no logits; the vocabulary is empty");
  for (const sampling_row& row : choices) {
    row.rules.validate();
    check_uniform(row.uniform);
    require(row.history >= 0 && row.history_size >= 0 && row.history <= std::ssize(histories) - row.history_size,
            "sample: a history of ", row.history_size, " tokens from token ", row.history, " on; there are ", histories.size());
    if (!is_penalised(row)) continue;
    for (const token t : history_of(row, histories)) check_history(t, static_cast<std::size_t>(vocabulary));
  }
}

}  // namespace detail

GYRE_END
