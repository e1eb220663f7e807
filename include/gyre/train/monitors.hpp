// Monitors: what a step tells about the state of the recurrence, and the two failures of recurrent-depth training that they
// name (recurrent_depth, section 2, "The failed runs").
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include <gyre/core/arena.hpp>
#include <gyre/core/layout.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// Means over the tokens of a step; norms are root mean squares over tokens.
struct monitors {
  double token_correlation = 0;  // of s_r, before n_c: mean over sequences of the mean off-diagonal correlation of their tokens
  double state_norm = 0;         // ||s_r||
  double state_change = 0;       // ||s_r - s_{r-1}||
  double relative_change = 0;    // state_change / state_norm
  double head_input_norm = 0;    // of what the head multiplies
};

namespace detail {

/// Sums behind `monitors`, over the micro-batches of a step.
struct monitor_sums {
  double correlation = 0;
  index correlated = 0;  // sequences of two tokens and more: one token correlates with nothing
  double state = 0, change = 0, head = 0;
  index tokens = 0;

  monitors means() const {
    const auto root = [this](double sum) { return tokens > 0 ? std::sqrt(sum / static_cast<double>(tokens)) : 0.0; };
    monitors m;
    m.token_correlation = correlated > 0 ? correlation / static_cast<double>(correlated) : 0;
    m.state_norm = root(state), m.state_change = root(change), m.head_input_norm = root(head);
    m.relative_change = m.state_norm > 0 ? m.state_change / m.state_norm : 0;
    return m;
  }
};

/// Numbers of a pass: three squared norms, and one for each sequence.
inline index measured_numbers(const batch_layout& layout) { return 3 + std::ssize(layout.sequences()); }

/// Works out the numbers of a pass (measured_numbers), in the device's memory, for add_measured. Rows of unit length x_i have the mean
/// off-diagonal correlation (||sum x_i||^2 - S) / (S (S - 1)), so no matrix of tokens by tokens is needed.
template <class B, class T, int W>
void measure(B& device, arena& scratch, const batch_layout& layout, rows<const T, W> previous, rows<const T, W> last,
             rows<const T, W> hidden, double* numbers) {
  using S = compute_t<T>;
  frame f(scratch);
  const auto x = scratch.template take_rows<S, W>(last.count);
  const auto in_statistics = [&](rows<const T, W> r) {
    if constexpr (std::is_same_v<T, S>) {
      return r;
    } else {
      const auto wide = scratch.template take_rows<S, W>(r.count);
      device.copy(r.view(), wide.view());
      return rows<const S, W>(wide);
    }
  };
  {
    frame g(scratch);
    const rows<const S, W> head = in_statistics(hidden);
    device.squared_norm(head.data, head.size(), numbers);
  }
  {
    frame g(scratch);
    const rows<const S, W> before = in_statistics(previous);
    device.copy(last.view(), x.view());
    device.squared_norm(static_cast<const S*>(x.data), x.size(), numbers + 1);
    device.combine(S(-1), before.data, S(1), x.data, x.size());
    device.squared_norm(static_cast<const S*>(x.data), x.size(), numbers + 2);
  }

  device.copy(last.view(), x.view());
  device.standardise(x.view());  // rows of squared length W
  S* total = scratch.template take<S>(W);
  double* of_sequence = numbers + 3;
  for (const sequence_span& s : layout.sequences()) {
    double* const squares = of_sequence++;
    if (s.count < 2) continue;
    frame g(scratch);
    S* workspace = scratch.template take<S>(B::column_sum_workspace(s.count, W));
    device.fill(matrix_view<S>(total, 1, W), S(0));
    device.column_sum(matrix_view<const S>(x.view().slice(s.begin, s.count)), total, workspace);
    device.squared_norm(static_cast<const S*>(total), W, squares);
  }
}
/// Adds what measure has worked out for states of this width.
inline void add_measured(const batch_layout& layout, int width, const double* numbers, monitor_sums& sums) {
  sums.tokens += layout.rows();
  sums.head += numbers[0], sums.state += numbers[1], sums.change += numbers[2];
  const double* of_sequence = numbers + 3;
  for (const sequence_span& s : layout.sequences()) {
    const double squares = *of_sequence++, n = static_cast<double>(s.count);
    if (s.count < 2) continue;  // never worked out
    sums.correlation += (squares / width - n) / (n * (n - 1));
    ++sums.correlated;
  }
}

inline std::string rounded(double value, const char* format = "%.4g") {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace detail

/// Names hidden-state collapse: all tokens of a sequence come to have the same state, and the loss stalls.
struct collapse_watch {
  double threshold = 0.95;  // of the moving average of the token correlation
  double memory = 0.98;     // weight of the past in that average, a step: 0.98 remembers about 50 steps

  /// Takes the token correlation of a step. Returns the sentence that names the failure while the average is above the
  /// threshold. Silent until it has seen as many steps as it remembers. Values that are not finite are left out.
  std::optional<std::string> see(std::uint64_t step, double token_correlation) {
    if (std::isfinite(token_correlation)) {
      weight = memory * weight + (1 - memory);
      sum = memory * sum + (1 - memory) * token_correlation;
    }
    if (weight < 0.63 || !(average() > threshold)) return std::nullopt;  // 1 - 1/e: of 1 / (1 - memory) steps
    return "step " + std::to_string(step) + ": hidden-state collapse: the correlation of states across tokens averages " +
           detail::rounded(average()) + ", above " + detail::rounded(threshold) +
           "; all tokens have nearly the same state. Use norms with learned weights (sandwich), an embedding scale, a concat "
           "injection, or a lower learning rate.";
  }
  /// The moving average so far; 0 before the first value.
  double average() const { return weight > 0 ? sum / weight : 0; }

  double weight = 0, sum = 0;  // of the average
};

/// Names a model that ignores its state: recurrence does not help it, though it has learned.
struct ignored_state_watch {
  double least_gain = 0.005;  // relative gain of the deep run over r = 1 that counts as using the state
  double learned = 1;         // nats below ln V from which on the gain is expected

  /// Takes validation losses (nats a token) at r = 1 and at a deep r, 8 by custom. Returns the sentence that names the failure.
  std::optional<std::string> see(std::uint64_t step, int vocabulary, double loss_at_1, double loss_deep, int deep = 8) const {
    const double untrained = std::log(static_cast<double>(vocabulary));
    if (!(loss_deep < untrained - learned) || !(loss_at_1 < loss_deep * (1 + least_gain))) return std::nullopt;
    return "step " + std::to_string(step) + ": ignored state: the loss at r = 1 (" + detail::rounded(loss_at_1) +
           " nats) is within " + detail::rounded(100 * least_gain) + "% of that at r = " + std::to_string(deep) + " (" +
           detail::rounded(loss_deep) +
           " nats); more steps do not help, the model ignores its state. Use sandwich norms and a lower learning rate.";
  }
};

GYRE_END
