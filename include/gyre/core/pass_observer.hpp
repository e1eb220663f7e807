// What layers report while a pass runs: the choices of routers, and which depths are read.
#pragma once

#include <cstdint>
#include <span>

#include <gyre/core/layout.hpp>
#include <gyre/core/precision.hpp>
#include <gyre/core/types.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

/// One router's choice for all rows of a pass, at one step. Views are valid during the call.
template <precision P>
struct routing_event {
  index router = 0;  // place of its selection bias in the flat buffer, by which the parameter table names it
  int bias_row = 0;  // of the selection bias that was used
  int step = 0, steps = 0;
  index experts = 0, active = 0;
  std::span<const std::int32_t> chosen;          // (rows, active), in ascending order in a row
  std::span<const typename P::statistic> gates;  // (rows, active)
  const batch_layout& layout;                    // of the rows
};

/// One depth attention for all rows of a pass, at one step. Views are valid during the call; slot j of keys is rows
/// j * rows .. of `keys`. The weight of slot j is exp(scale q . k_j - lse).
template <precision P>
struct depth_reading_event {
  index layer = 0;  // place of its first parameter in the flat buffer
  int step = 0, steps = 0;
  matrix_view<const typename P::activation> queries;  // (rows, heads * width), as they are read
  matrix_view<const typename P::activation> keys;     // (slots * rows, kv_heads * width)
  attention_shape heads;
  const typename P::statistic* lse = nullptr;  // (rows, heads)
  const batch_layout& layout;                  // of the rows
};

/// Hears of what layers do, on the thread that runs the pass, once for every layer and step. Memory of the events is the device's;
/// the host may read it, for the pass waits for the device before it tells. A device works on while it is not waited for: an
/// observer says what it can do without.
template <precision P>
class pass_observer {
 public:
  virtual void routed(const routing_event<P>&) {}
  virtual void read_depths(const depth_reading_event<P>&) {}

  /// Whether passes over batches may tell routed() when the pass has been done, in its order, without gates.
  virtual bool hears_late() const { return false; }
  /// Whether read_depths() wants to hear of the next pass.
  virtual bool hears_of_depths() const { return true; }
  /// Room in the device's memory for the choices of an event whose memory nothing has been written into yet: then they are copied
  /// there and routed() is not called. Null: they are told at once.
  virtual std::int32_t* room_for_choices(const routing_event<P>&) { return nullptr; }

 protected:
  ~pass_observer() = default;
};

GYRE_END
