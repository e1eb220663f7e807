// Numbers that optimiser updates take beside their vectors: worked out once a step, in double, by the optimiser.
#pragma once

#include <gyre/config.hpp>

GYRE_BEGIN

// Decay is given by what it takes away (`shrink`), not by what it leaves: 1 - 1e-7 is 1 in float.

/// w -= shrink w + rate m / (sqrt(v / v_correction) + eps), after the moments m and v took the gradient scaled by `gradient_scale`.
struct adamw_numbers {
  double gradient_scale = 1;  // of the norm clip
  double beta1 = 0, beta2 = 0, eps = 0;
  double shrink = 0;        // lr decay
  double rate = 0;          // lr / (1 - beta1^t)
  double v_correction = 1;  // 1 - beta2^t
};

/// m = beta1 m + (1 - beta1) g; v = max(beta2 v + (1 - beta2) g^2, v_floor), of the gradient scaled by `gradient_scale`; then
/// w -= shrink w + rate / c atan2(m, sqrt(v / v_correction)) with c = max(1, sqrt(mean(g^2 / v))),
/// 1 where that is NaN.
struct clipped_atan2_numbers {
  double gradient_scale = 1;
  double beta1 = 0, beta2 = 0;
  double v_floor = 0;  // eps^2
  double shrink = 0;
  double rate = 0;          // lr / (1 - beta1^t)
  double v_correction = 1;  // 1 - beta2^t
};

GYRE_END
