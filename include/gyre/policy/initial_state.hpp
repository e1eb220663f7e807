// Initial states s_0 of a recurrence (recurrent_depth, section 4).
#pragma once

#include <cmath>

#include <gyre/core/concepts.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

/// Each policy fills s_0; `is_embedding` tells whether the state is the embedded input, whose gradient then flows back.
/// Random states are keyed by (seed, step, the sequence's key, position, feature): a token's state does not depend on the batch
/// around it.
namespace initial_state {

/// Huginn: truncated normal of std sqrt(2 / (5 h)) * scale, cut at 3 std, times sqrt(h).
struct like_init {
  static constexpr bool is_embedding = false;
  template <class B, class P, int W>
  static void fill(context<B, P>& c, state_key key, rows<const activation_t<P>, W>, rows<activation_t<P>, W> s) {
    c.device.random_normal(s.view(), c.layout, key, key.scale * std::sqrt(2.0 / 5.0), true);
  }
};
/// Retrofitted checkpoints: the same without the factor sqrt(h).
struct like_init_unscaled {
  static constexpr bool is_embedding = false;
  template <class B, class P, int W>
  static void fill(context<B, P>& c, state_key key, rows<const activation_t<P>, W>, rows<activation_t<P>, W> s) {
    c.device.random_normal(s.view(), c.layout, key, key.scale * std::sqrt(2.0 / (5.0 * W)), true);
  }
};
/// N(0, 1).
struct normal {
  static constexpr bool is_embedding = false;
  template <class B, class P, int W>
  static void fill(context<B, P>& c, state_key key, rows<const activation_t<P>, W>, rows<activation_t<P>, W> s) {
    c.device.random_normal(s.view(), c.layout, key, key.scale, false);
  }
};
/// Zeros: what like_init gives at scale 0, the switch for determinism.
struct zero {
  static constexpr bool is_embedding = false;
  template <class B, class P, int W>
  static void fill(context<B, P>& c, state_key, rows<const activation_t<P>, W>, rows<activation_t<P>, W> s) {
    c.device.fill(s.view(), activation_t<P>(0));
  }
};
/// s_0 = e.
struct embedding {
  static constexpr bool is_embedding = true;
  template <class B, class P, int W>
  static void fill(context<B, P>& c, state_key, rows<const activation_t<P>, W> e, rows<activation_t<P>, W> s) {
    c.device.copy(e.view(), s.view());
  }
};
/// N(0, 1), then zero mean and unit variance per token; scale 0 gives zeros, any other changes nothing.
struct unit {
  static constexpr bool is_embedding = false;
  template <class B, class P, int W>
  static void fill(context<B, P>& c, state_key key, rows<const activation_t<P>, W>, rows<activation_t<P>, W> s) {
    if (key.scale == 0) return c.device.fill(s.view(), activation_t<P>(0));
    c.device.random_normal(s.view(), c.layout, key, 1.0, false);
    c.device.standardise(s.view());
  }
};

}  // namespace initial_state

GYRE_END
