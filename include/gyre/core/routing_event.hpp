// What routers report while a pass runs.
#pragma once

#include <gyre/core/layout.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// One router's choice for all rows of a pass, at one step. Views are valid during the call.
template <class S>
struct routing_event {
  index router = 0;  // place of its selection bias in the flat buffer, by which the parameter table names it
  int bias_row = 0;  // of the selection bias that was used
  int step = 0, steps = 0;
  index experts = 0, active = 0;
  std::span<const std::int32_t> chosen;  // (rows, active), in ascending order in a row
  std::span<const S> gates;              // (rows, active)
  const batch_layout& layout;            // of the rows
};

/// Hears of every choice. Called on the thread that runs the pass.
template <class S>
class routing_observer {
 public:
  virtual void routed(const routing_event<S>& event) = 0;

 protected:
  ~routing_observer() = default;
};

GYRE_END
