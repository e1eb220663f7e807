// Choices of routers that are told when a pass has been done, so that no router waits for the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <gyre/core/pass_observer.hpp>
#include <gyre/model/network.hpp>

GYRE_BEGIN

namespace detail {

/// Stands before an observer that hears late: choices are copied within the device's memory, which the planned pass takes.
template <class B, precision P>
class late_choices final : public pass_observer<P> {
 public:
  explicit late_choices(B device) : device_(std::move(device)) {}

  /// Sizes of a planned pass: events, and choices in all of them.
  class counter final : public pass_observer<P> {
   public:
    std::size_t events = 0;
    index choices = 0;
    bool hears_of_depths() const override { return false; }
    std::int32_t* room_for_choices(const routing_event<P>& event) override {
      ++events, choices += std::ssize(event.chosen);
      return &nowhere_;
    }

   private:
    std::int32_t nowhere_ = 0;  // an address for the books
  };
  void prepare(const counter& most) {
    events_.reserve(most.events);
    const auto bytes = static_cast<std::size_t>(most.choices) * sizeof(std::int32_t);
    if (bytes == 0 || (room_ != nullptr && bytes <= room_->size())) return;
    room_.reset();
    room_ = std::make_unique<device_buffer<B>>(device_, bytes);
  }

  /// Before a pass, for whom.
  void begin(pass_observer<P>& to) { to_ = &to, used_ = 0, events_.clear(); }
  /// When the pass has been done.
  void tell() {
    for (const routing_event<P>& event : events_) to_->routed(event);
    events_.clear();
  }

  std::int32_t* room_for_choices(const routing_event<P>& event) override {
    const auto free = room_ == nullptr ? 0 : room_->size() / sizeof(std::int32_t) - used_;
    if (event.chosen.size() > free) return nullptr;
    std::int32_t* const room = room_->template as<std::int32_t>() + used_;
    used_ += event.chosen.size();
    events_.push_back({event.router,
                       event.bias_row,
                       event.step,
                       event.steps,
                       event.experts,
                       event.active,
                       {room, event.chosen.size()},
                       {},
                       event.layout});
    return room;
  }
  // Out of room, in passes that were not planned.
  void routed(const routing_event<P>& event) override { to_->routed(event); }
  bool hears_of_depths() const override { return to_->hears_of_depths(); }
  void read_depths(const depth_reading_event<P>& event) override { to_->read_depths(event); }

 private:
  B device_;
  std::unique_ptr<device_buffer<B>> room_;
  std::size_t used_ = 0;
  std::vector<routing_event<P>> events_;
  pass_observer<P>* to_ = nullptr;
};

}  // namespace detail

GYRE_END
