// Backend `cuda`: the contract in CUDA kernels. Compiled by nvcc it runs on a GPU; compiled by g++ or clang the same kernels run
// on the interpreter, for tests.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <gyre/backend/cuda/attention.hpp>
#include <gyre/backend/cuda/attention_backward.hpp>
#include <gyre/backend/cuda/cache.hpp>
#include <gyre/backend/cuda/depth.hpp>
#include <gyre/backend/cuda/elementwise.hpp>
#include <gyre/backend/cuda/embedding.hpp>
#include <gyre/backend/cuda/gates.hpp>
#include <gyre/backend/cuda/initial_states.hpp>
#include <gyre/backend/cuda/loss.hpp>
#include <gyre/backend/cuda/norms.hpp>
#include <gyre/backend/cuda/products.hpp>
#include <gyre/backend/cuda/rotary.hpp>
#include <gyre/backend/cuda/routing.hpp>
#include <gyre/backend/cuda/sampling.hpp>
#include <gyre/backend/cuda/updates.hpp>
#include <gyre/backend/reference/products.hpp>
#include <gyre/ops/contract.hpp>
#if defined(__CUDACC__)
#include <gyre/backend/cuda/gpu_device.hpp>
#else
#include <gyre/backend/cuda/simulated_device.hpp>
#endif

GYRE_BEGIN

/// A handle to a device, cheap to copy; copies share it. For float, double and bf16.
///
/// Calls return before their work is done; finish() waits. Results have the same bits in every run. A device is used by one
/// thread at a time; several devices are independent.
template <class Device>
class basic_cuda : public detail::cuda_elementwise<basic_cuda<Device>>,
                   public detail::cuda_embedding<basic_cuda<Device>>,
                   public detail::cuda_norms<basic_cuda<Device>>,
                   public detail::cuda_products<basic_cuda<Device>>,
                   public detail::cuda_gates<basic_cuda<Device>>,
                   public detail::cuda_rotary<basic_cuda<Device>>,
                   public detail::cuda_attention<basic_cuda<Device>>,
                   public detail::cuda_attention_backward<basic_cuda<Device>>,
                   public detail::cuda_cache<basic_cuda<Device>>,
                   public detail::cuda_depth<basic_cuda<Device>>,
                   public detail::cuda_routing<basic_cuda<Device>>,
                   public detail::cuda_sampling<basic_cuda<Device>>,
                   public detail::cuda_loss<basic_cuda<Device>>,
                   public detail::cuda_initial_states<basic_cuda<Device>>,
                   public detail::cuda_updates<basic_cuda<Device>> {
 public:
  template <class T>
  using prepared = detail::nothing_prepared<T>;

  basic_cuda() : basic_cuda(std::make_shared<Device>()) {}
  explicit basic_cuda(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  Device& device() const { return *device_; }

  std::byte* allocate(std::size_t bytes) { return device_->allocate(bytes); }
  void deallocate(std::byte* memory, std::size_t) noexcept { device_->deallocate(memory); }
  /// Waits until everything called has been done; then the host may read and write the backend's memory.
  void finish() { device_->finish(); }

 private:
  std::shared_ptr<Device> device_;
};

#if defined(__CUDACC__)
/// The backend on a GPU; for other settings than the usual ones, cuda(std::make_shared<gpu_device>(gpu_options{...})).
using cuda = basic_cuda<gpu_device>;
#else
/// The kernels of `cuda` on the interpreter: slow, and watched. Needs target gyre::simt or gyre::simt_race.
using simulated_cuda = basic_cuda<simulated_device>;
#endif

GYRE_END
