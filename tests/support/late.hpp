// A backend that does nothing before it must: what is called waits for finish(). Code that reads results without waiting reads what
// was there before.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <gyre/parity/wrapped.hpp>

namespace gyre_test {

/// Copies share what waits. Memory is full of NaN at first. For one thread.
template <class B>
class late : public gyre::parity::wrapped<late<B>, B> {
  using call = std::function<void(B&)>;

  struct queue {
    B device;
    std::deque<call> calls;

    explicit queue(B d) : device(std::move(d)) {}
    queue(const queue&) = delete;
    queue& operator=(const queue&) = delete;
    ~queue() { run(); }
    void run() {
      while (!calls.empty()) {
        const call next = std::move(calls.front());
        calls.pop_front();
        next(device);
      }
    }
  };

 public:
  explicit late(B device = B{}) : gyre::parity::wrapped<late, B>(device), queue_(std::make_shared<queue>(std::move(device))) {}

  std::byte* allocate(std::size_t bytes) {
    std::byte* const memory = this->inner().allocate(bytes);
    std::memset(memory, 0xFF, bytes);
    return memory;
  }
  void deallocate(std::byte* memory, std::size_t bytes) noexcept {
    queue_->calls.push_back([memory, bytes](B& b) { b.deallocate(memory, bytes); });
  }
  void finish() { queue_->run(); }

  /// What B prepares, brought up to date in its turn.
  template <class T>
  class prepared {
   public:
    using of_inner = typename B::template prepared<T>;

    prepared(late& device, const T* flat, std::span<const gyre::tensor_entry> table, bool backward)
        : inner_(std::make_shared<of_inner>(device.inner(), flat, table, backward)) {}
    void refresh(late& device) {
      device.queue_->calls.push_back([inner = inner_](B& b) { inner->refresh(b); });
    }
    const std::shared_ptr<of_inner>& inner() const { return inner_; }

   private:
    std::shared_ptr<of_inner> inner_;
  };

  template <gyre::operation Op, class... A>
  void operate(const A&... a) {
    keeper keep;
    const auto arguments = std::apply([&](const auto&... x) { return std::tuple{keep.kept_if_host(x)...}; },
                                      gyre::parity::signature<Op>::map(keep, keep.of_inner(a)...));
    queue_->calls.push_back([arguments, kept = keep.kept](B& b) {
      std::apply([&](const auto&... x) { gyre::parity::signature<Op>::call(b, x...); }, arguments);
    });
  }

 private:
  /// The visitor that copies what lies in memory of the host.
  struct keeper {
    using backend = B;
    std::vector<std::shared_ptr<void>> kept;

    template <class X>
    std::span<const X> copy(std::span<const X> x) {
      auto own = std::make_shared<std::vector<X>>(x.begin(), x.end());
      kept.push_back(own);
      return *own;
    }
    template <class X>
    X of_inner(const X& x) {
      return x;
    }
    const gyre::batch_layout& of_inner(const gyre::batch_layout& x) { return x; }
    template <class T>
    auto of_inner(const gyre::weight_matrix<T, prepared<T>>& w) {
      if (w.prepared != nullptr) kept.push_back(w.prepared->inner());
      return gyre::weight_matrix<T, typename B::template prepared<T>>{
          w.raw, w.prepared != nullptr ? w.prepared->inner().get() : nullptr};
    }
    template <class X>
    X kept_if_host(const X& x) {
      return x;
    }
    auto kept_if_host(std::reference_wrapper<const gyre::batch_layout> layout) {
      auto own = std::make_shared<gyre::batch_layout>(layout.get());
      kept.push_back(own);
      return std::cref(static_cast<const gyre::batch_layout&>(*own));
    }

    template <class X>
    X input(std::string_view, X x) {
      return x;
    }
    template <class T>
    const T* input(std::string_view, const T* x, gyre::index) {
      return x;
    }
    template <class X>
    X output(std::string_view, X x) {
      return x;
    }
    template <class T>
    T* output(std::string_view, T* x, gyre::index) {
      return x;
    }
    template <class X>
    X updated(std::string_view, X x) {
      return x;
    }
    template <class T>
    T* updated(std::string_view, T* x, gyre::index) {
      return x;
    }
    template <class T>
    gyre::matrix_view<T> accumulated(std::string_view, gyre::matrix_view<T> x, bool) {
      return x;
    }
    template <class T>
    T* accumulated(std::string_view, T* x, gyre::index, bool) {
      return x;
    }
    template <class W, class... Groups>
    W weight(std::string_view, W w, Groups...) {
      return w;
    }
    template <class T>
    gyre::matrix_view<T> weight_gradient(std::string_view, gyre::matrix_view<T> dw, gyre::row_groups) {
      return dw;
    }
    gyre::row_groups groups(gyre::row_groups g) { return g; }
    template <class T>
    std::span<const gyre::cache_lane<T>> lanes(std::string_view, std::span<const gyre::cache_lane<T>> all, gyre::index, bool) {
      auto own = std::make_shared<std::vector<gyre::cache_lane<T>>>(all.begin(), all.end());
      for (gyre::cache_lane<T>& lane : *own)
        if (lane.steps_run != nullptr)
          lane.steps_run = copy(std::span(lane.steps_run, static_cast<std::size_t>(lane.capacity))).data();
      kept.push_back(own);
      return *own;
    }
    template <class X>
    std::span<const X> host(std::string_view, std::span<const X> x) {
      return copy(x);
    }
    template <class T>
    const T* host(std::string_view, const T* x, gyre::index count) {
      return copy(std::span(x, static_cast<std::size_t>(count))).data();
    }
    template <class T>
    T scalar(T x) {
      return x;
    }
    template <class T>
    T* workspace(T* x, gyre::index) {
      return x;
    }
  };

  std::shared_ptr<queue> queue_;
};

}  // namespace gyre_test
