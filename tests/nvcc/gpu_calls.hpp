// Backend `cuda` for units that nvcc does not compile: every call of an operation is a function that a unit of nvcc's holds
// (calls_*.cu). The comparison with the reference is then compiled by g++, once, and kernels by nvcc, once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>

#include <gyre/backend/reference/products.hpp>
#include <gyre/parity/wrapped.hpp>

namespace gyre_test {

/// What gyre::cuda has beside operations. Throws gyre::error where there is no GPU that it runs on.
class gpu_memory {
 public:
  template <class T>
  using prepared = gyre::detail::nothing_prepared<T>;

  gpu_memory();
  std::byte* allocate(std::size_t bytes);
  void deallocate(std::byte* memory, std::size_t bytes) noexcept;
  void finish();
  static gyre::index add_scaled_backward_workspace(gyre::index rows);
  static gyre::index rms_norm_backward_workspace(gyre::index rows, gyre::index cols);
  static gyre::index column_sum_workspace(gyre::index rows, gyre::index cols);
  static gyre::index attention_backward_workspace(gyre::index rows, gyre::attention_shape shape);

  /// A gyre::cuda.
  void* device() const { return device_.get(); }

 private:
  std::shared_ptr<void> device_;
};

/// Defined in calls.cuh; where nobody holds the call, the linker says which.
template <gyre::operation Op, class... A>
void call_on_gpu(const gpu_memory&, const A&...);

class gpu_calls : public gyre::parity::wrapped<gpu_calls, gpu_memory> {
 public:
  gpu_calls() : wrapped(gpu_memory()) {}
  template <gyre::operation Op, class... A>
  void operate(const A&... a) {
    call_on_gpu<Op, A...>(*this, a...);
  }
};

}  // namespace gyre_test
