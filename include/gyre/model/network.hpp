// A network: an architecture's parameters on a device. Read-only once trained, so that many streams may share it.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gyre/core/arena.hpp>
#include <gyre/core/random.hpp>
#include <gyre/model/model.hpp>
#include <gyre/ops/contract.hpp>

GYRE_BEGIN

/// Device memory that one object owns.
template <class B>
class device_buffer {
 public:
  device_buffer(B device, std::size_t bytes) : device_(std::move(device)), bytes_((std::max)(bytes, std::size_t{1})) {
    memory_ = device_.allocate(bytes_);
  }
  ~device_buffer() { device_.deallocate(memory_, bytes_); }
  device_buffer(const device_buffer&) = delete;
  device_buffer& operator=(const device_buffer&) = delete;

  std::byte* data() const { return memory_; }
  std::size_t size() const { return bytes_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(memory_);
  }

 private:
  B device_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Architecture x backend x precision: one flat buffer of parameters, in the order of parameter_table<A>. `B` is a handle that
/// is cheap to copy. Const use (passes, generation) is safe from several threads; changing parameters is not.
template <architecture A, class B, precision P = fp32>
class network {
 public:
  using architecture_type = A;
  using backend_type = B;
  using precision_type = P;
  using scalar = parameter_t<P>;
  using table = parameter_table<A>;
  static constexpr index parameter_count = A::parameter_count;
  static_assert(table::scalars == A::parameter_count, "network: a layer visits other tensors than it counts");

  /// Allocates and initialises. `gradients`: whether backward passes will run, for which backends prepare more.
  network(B device, seed s, bool gradients = true)
      : device_(std::move(device)),
        memory_(std::make_shared<device_buffer<B>>(device_, static_cast<std::size_t>(parameter_count) * sizeof(scalar))),
        prepared_(device_, memory_->template as<scalar>(), table::entries, gradients) {
    fill_tables();
    initialise(s);
  }
  network(network&&) noexcept = default;
  network& operator=(network&&) noexcept = default;

  B& device() { return device_; }
  const B& device() const { return device_; }
  const rotary_tables<statistic_t<P>>& tables() const { return tables_; }
  weights<B, P> parameters() const { return {memory_->template as<scalar>(), &prepared_}; }

  /// All parameters, flat, for the host: waits for what has been called. Call refresh() after changing them.
  std::span<scalar> values() {
    device_.finish();
    return {device_values(), static_cast<std::size_t>(parameter_count)};
  }
  std::span<const scalar> values() const {
    B device = device_;
    device.finish();
    return {memory_->template as<scalar>(), static_cast<std::size_t>(parameter_count)};
  }
  /// Where they lie, for operations of the backend.
  scalar* device_values() { return memory_->template as<scalar>(); }
  /// Tells the backend that parameters have changed.
  void refresh() { prepared_.refresh(device_); }

  /// Draws all parameters anew by the architecture's scheme: scalar i of tensor n is value i of stream (seed, initialisation, n).
  void initialise(seed s) {
    const std::span<scalar> all = values();
    for (int n = 0; n < table::count; ++n) {
      const tensor_entry& entry = table::entries[static_cast<std::size_t>(n)];
      const initial_value start = A::scheme::of(entry.kind, entry.shape, A::facts);
      const std::span<scalar> tensor =
          all.subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.shape.size()));
      if (start.variance > 0) {
        const random_stream stream(s, purpose::initialisation, static_cast<std::uint64_t>(n));
        if constexpr (std::is_floating_point_v<scalar>) {
          stream.fill_truncated_normal(tensor, counter{}, std::sqrt(start.variance));
        } else {
          std::vector<double> drawn(tensor.size());
          stream.fill_truncated_normal(std::span<double>(drawn), counter{}, std::sqrt(start.variance));
          std::transform(drawn.begin(), drawn.end(), tensor.begin(), [](double x) { return scalar(x); });
        }
      } else {
        std::fill(tensor.begin(), tensor.end(), scalar(static_cast<real_t<compute_t<scalar>>>(start.constant)));
      }
    }
    refresh();
  }

 private:
  GYRE_COLD void fill_tables() {
    using T = statistic_t<P>;
    index total = 0;
    const std::vector<rotary_spec> specs = table::rotary_specs();
    for (const rotary_spec& s : specs) total += index{s.length} * (s.width / 2) * 2;
    table_memory_ = std::make_shared<device_buffer<B>>(device_, static_cast<std::size_t>(total) * sizeof(T));
    T* out = table_memory_->template as<T>();
    for (const rotary_spec& s : specs) {
      tables_.all.push_back({s, out});
      for (int position = 0; position < s.length; ++position)
        for (int j = 0; j < s.width / 2; ++j) {
          const double angle = position * std::pow(s.base, -2.0 * j / s.width);
          *out++ = T(static_cast<real_t<T>>(std::cos(angle)));
          *out++ = T(static_cast<real_t<T>>(std::sin(angle)));
        }
    }
  }

  B device_;
  std::shared_ptr<device_buffer<B>> memory_, table_memory_;
  rotary_tables<statistic_t<P>> tables_;
  typename B::template prepared<scalar> prepared_;
};

GYRE_END
