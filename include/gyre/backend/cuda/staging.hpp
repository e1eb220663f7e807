// Small arrays of the host on their way to the device: token ids, positions, where sequences lie.
#pragma once

#if defined(__CUDACC__)

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include <gyre/backend/cuda/check.hpp>
#include <gyre/simt.hpp>

GYRE_BEGIN

namespace detail {

/// A kernel's parameters are at most 4 KiB on every architecture: this much, the target and the count.
inline constexpr std::size_t staged_words = 500;
struct staged_block {
  std::uint64_t words[staged_words];
};
inline constexpr unsigned staging_threads = 256;

/// Stores a block of words that came as a parameter: a captured graph keeps it, where a copy would read the host again.
template <int = 0>
GYRE_KERNEL void __launch_bounds__(staging_threads) store_staged(staged_block from, std::uint64_t* to, unsigned count) {
  for (unsigned i = threadIdx.x; i < count; i += staging_threads) to[i] = from.words[i];
}

/// A ring of slots, each in page-locked memory of the host and in the device's. A copy from slot to slot is ordered by the stream;
/// the host waits only when it comes round to a slot that has not been copied yet.
class staging_ring {
 public:
  /// What has been staged may be read by whatever is called before this many others are staged.
  static constexpr std::size_t slots = 16;

  staging_ring(int device, cudaStream_t stream, std::size_t slot_bytes) : device_(device), stream_(stream) {
    const device_scope scope(device);
    for (owned_event& event : copied_) {
      cudaEvent_t made = nullptr;
      check_cuda(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreateWithFlags");
      event = owned_event(device, made);
    }
    resize(slot_bytes);
    // Loads the kernel, which a stream that is captured may not.
    cudaFuncAttributes attributes{};
    check_cuda(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(store_staged<>)), "cudaFuncGetAttributes");
  }

  /// The current device is the ring's. What is staged during capture becomes part of the graph, values and all.
  const void* stage(const void* from, std::size_t bytes) {
    const bool captured = is_captured(stream_);
    if (bytes > slot_bytes_) {
      require(!captured, "cuda: an array of ", bytes, " bytes of the host while the stream is captured into a graph, and ",
              slot_bytes_, " are planned: set gpu_options::staged_bytes, or run the same once before");
      check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
      resize((std::max)(bytes, 2 * slot_bytes_));
    }
    graph_has_slots_ = graph_has_slots_ || captured;
    const std::size_t slot = next_++ % slots, at = slot * slot_bytes_;
    std::byte* const to = static_cast<std::byte*>(on_device_.get()) + at;
    if (captured) {
      store(to, from, bytes);
    } else {
      check_cuda(cudaEventSynchronize(copied_[slot].get()), "cudaEventSynchronize");
      std::byte* const image = static_cast<std::byte*>(on_host_.get()) + at;
      std::memcpy(image, from, bytes);
      check_cuda(cudaMemcpyAsync(to, image, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
      check_cuda(cudaEventRecord(copied_[slot].get(), stream_), "cudaEventRecord");
    }
    return to;
  }

 private:
  void resize(std::size_t bytes) {
    constexpr std::size_t line = 256;  // bytes: what cudaMalloc aligns to
    bytes = ((std::max)(bytes, std::size_t{1}) + line - 1) / line * line;
    if (std::exchange(graph_has_slots_, false)) of_graphs_.push_back(std::move(on_device_));
    on_host_ = {}, on_device_ = {};
    slot_bytes_ = 0;
    void* memory = nullptr;
    check_cuda(cudaMallocHost(&memory, bytes * slots), "cudaMallocHost");
    on_host_ = owned_host_memory(device_, memory);
    on_device_ = device_memory(device_, bytes * slots, "staged arrays");
    slot_bytes_ = bytes;
  }
  void store(std::byte* to, const void* from, std::size_t bytes) {
    constexpr std::size_t word = sizeof(std::uint64_t);
    for (std::size_t at = 0; at < bytes; at += sizeof(staged_block)) {
      const std::size_t part = (std::min)(bytes - at, sizeof(staged_block));
      staged_block block;
      std::memcpy(&block, static_cast<const std::byte*>(from) + at, part);
      std::memset(reinterpret_cast<std::byte*>(&block) + part, 0, sizeof(block) - part);
      simt::launch(store_staged<>, 1, staging_threads, 0, stream_, block, reinterpret_cast<std::uint64_t*>(to + at),
                   static_cast<unsigned>((part + word - 1) / word));
    }
  }

  int device_;
  cudaStream_t stream_;
  std::array<owned_event, slots> copied_;
  owned_host_memory on_host_;
  owned_memory on_device_;
  bool graph_has_slots_ = false;
  std::vector<owned_memory> of_graphs_;  // slots of before, which graphs still write and read
  std::size_t slot_bytes_ = 0, next_ = 0;
};

}  // namespace detail

GYRE_END

#endif
