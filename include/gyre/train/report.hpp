// What a training step reports.
#pragma once

#include <cstdint>
#include <cstdio>
#include <numbers>
#include <ostream>
#include <string>

#include <gyre/policy/depth.hpp>
#include <gyre/train/monitors.hpp>

GYRE_BEGIN

/// One optimiser step.
struct step_report {
  std::uint64_t step = 0;    // from 1
  double loss = 0;           // nats per counted target
  depth_draw depth;          // of the last micro-batch: n steps without gradient, then k with
  double gradient_norm = 0;  // of the mean loss, before the clip
  double learning_rate = 0;  // lr_t
  index rows = 0;            // of all micro-batches
  index tokens = 0;          // counted targets
  monitors seen;
  double expert_load = 0;     // largest ratio of an expert's tokens to the mean of its router's; 0 without experts
  double auxiliary_loss = 0;  // of routers, a counted target, beside `loss`

  double bits_per_token() const { return loss / std::numbers::ln2; }
};

/// One line: "step 12  loss 2.4310 (3.507 bits)  r 9 = 5 + 4  |g| 0.83  lr 0.0004  correlation 0.12  change 0.031".
GYRE_COLD inline std::string to_string(const step_report& report) {
  char text[1280];  // three numbers in plain digits of at most 320 characters, the others of at most 20
  const int used = std::snprintf(
      text, sizeof text, "step %llu  loss %.4f (%.3f bits)  r %d = %d + %d  |g| %.3g  lr %.3g  correlation %.3f  change %.3g",
      static_cast<unsigned long long>(report.step), report.loss, report.bits_per_token(), report.depth.total(),
      report.depth.free_steps, report.depth.gradient_steps, report.gradient_norm, report.learning_rate,
      report.seen.token_correlation, report.seen.relative_change);
  if (report.expert_load > 0 && used > 0 && used < 1000)
    std::snprintf(text + used, sizeof text - static_cast<std::size_t>(used), "  load %.2f", report.expert_load);
  return text;
}
inline std::ostream& operator<<(std::ostream& out, const step_report& report) { return out << to_string(report); }

GYRE_END
