// What a training session says on the terminal.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include <gyre/train/evaluate.hpp>

#include "html.hpp"
#include "terminal.hpp"

namespace examples {

/// Where a training stands, for its progress line.
struct session_progress {
  std::uint64_t step = 0, total = 0;
  double loss = 0;  // nats per token, averaged over the last steps
  int depth = 0;    // r of the last step
  double tokens_per_second = 0;
  double seconds_left = -1;  // negative: not known yet
};

/// 12345678 as "12,345,678".
inline std::string thousands(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

/// "step 120/1500  loss 2.431  r 9  12,345 tokens/s  left 3:07".
inline std::string progress_text(const session_progress& p) {
  std::string text = "step " + std::to_string(p.step) + "/" + std::to_string(p.total) + "  loss " + fixed_text(p.loss, 3) +
                     "  r " + std::to_string(p.depth) + "  " +
                     thousands(static_cast<std::uint64_t>(p.tokens_per_second + 0.5)) + " tokens/s";
  if (p.seconds_left >= 0) text += "  left " + clock_text(p.seconds_left);
  return text;
}

/// Two lines: the numbers of steps, and below each the bits of a token, which is called `unit`.
inline std::string validation_table(std::span<const gyre::evaluation> results, const std::string& unit) {
  std::string depths = "  r                 ", bits = "  bits per " + unit;
  bits.resize(depths.size(), ' ');
  for (const gyre::evaluation& e : results) {
    const std::string r = std::to_string(e.depth), value = fixed_text(e.bits_per_token(), 3);
    depths += std::string(r.size() < 8 ? 8 - r.size() : 1, ' ') + r;
    bits += std::string(value.size() < 8 ? 8 - value.size() : 1, ' ') + value;
  }
  return depths + "\n" + bits;
}

}  // namespace examples
