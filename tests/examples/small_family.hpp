#pragma once

#include "../../examples/support/mixture_text.hpp"

namespace gyre_test {

/// Width 64 and short sequences, for trainings of minutes.
inline examples::mixture_family small_family() {
  examples::mixture_family f = examples::mixture_family::of(8);
  f.layered.vocab = 72, f.layered.width = 64, f.layered.context = 48;
  f.layered.head_width = 16, f.layered.heads = 4, f.layered.kv_heads = 1, f.layered.router_width = 16;
  f.layered.experts = 8, f.layered.active = 2, f.layered.expert_width = f.layered.shared_width = 128;
  f.depth_kv_heads = 1;
  return f;
}

}  // namespace gyre_test
