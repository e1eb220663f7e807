// A GPU as backend `cuda` sees it: a stream, memory, and the libraries of NVIDIA's that some operations are made of.
#pragma once

#if defined(__CUDACC__)

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <exception>
#include <limits>
#include <map>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <gyre/backend/cuda/blas.hpp>
#include <gyre/backend/cuda/check.hpp>
#include <gyre/backend/cuda/staging.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// Everything has a default that works.
struct gpu_options {
  int device = 0;                       // its number, as CUDA counts
  cudaStream_t stream = nullptr;        // the user's, which must outlive the device; null: one of its own
  cublasHandle_t blas = nullptr;        // the user's, for nobody else while the device lives; null: one of its own
  std::size_t workspace_bytes = 0;      // scratch of operations; it grows in the first pass, which a captured graph cannot
  std::size_t staged_bytes = 64 << 10;  // of each small array of the host that is copied to the device; grows likewise
  std::size_t blas_workspace_bytes = 32 << 20;  // what cuBLAS recommends for compute capability 9.0; less serves older ones
};

namespace detail {

inline constexpr int least_capability = 80;  // ten times major, plus minor: bf16 tensor cores and asynchronous copies

/// Asked for its attributes: whether the program has code for the current device.
template <int = 0>
GYRE_KERNEL void probe() {}

inline void check_device(int device) {
  int devices = 0, major = 0, minor = 0, managed = 0, concurrent = 0;
  const cudaError_t counted = cudaGetDeviceCount(&devices);
  if (counted == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    cudaGetLastError();
    cudaDriverGetVersion(&driver);  // 0 without one
    cudaRuntimeGetVersion(&runtime);
    require(driver > 0, "cuda: this machine has no driver for NVIDIA's GPUs");
    fail("cuda: the GPU's driver is for CUDA ", driver / 1000, ".", driver % 1000 / 10, ", and the program's runtime is ",
         runtime / 1000, ".", runtime % 1000 / 10, ": update the driver, or build with an older toolkit");
  }
  check_cuda(counted, "cudaGetDeviceCount");
  require(device >= 0 && device < devices, "cuda: device ", device, " asked for; this process has ", devices,
          " of them, numbered from 0");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, device), "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, device), "cudaDeviceGetAttribute");
  require(10 * major + minor >= least_capability, "cuda: device ", device, " has compute capability ", major, ".", minor, "; ",
          least_capability / 10, ".", least_capability % 10, " is the least that gyre's kernels run on");
  require(managed != 0, "cuda: device ", device, " has no managed memory, which the host reads results from");
  require(concurrent != 0, "cuda: device ", device,
          " has managed memory that the host may touch only while nothing runs on it, as on "
          "Windows and in WSL 2; Linux on the machine itself has what gyre needs");
  const device_scope scope(device);
  cudaFuncAttributes attributes{};
  const cudaError_t found = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(probe<>));
  require(found != cudaErrorNoKernelImageForDevice && found != cudaErrorInvalidDeviceFunction,
          "cuda: the program has no code for device ", device, " of compute capability ", major, ".", minor, ": add ",
          10 * major + minor, " to CMAKE_CUDA_ARCHITECTURES");
  check_cuda(found, "cudaFuncGetAttributes");
  require(attributes.ptxVersion >= least_capability, "cuda: the program's kernels were compiled for compute capability ",
          attributes.ptxVersion / 10, ".", attributes.ptxVersion % 10,
          ", which lacks what some of them need: set "
          "CMAKE_CUDA_ARCHITECTURES to ",
          least_capability, " or more, best to ", 10 * major + minor, " for device ", device);
}

}  // namespace detail

/// For one thread at a time. Calls are made with the device current and leave the thread's current device as it was. Several
/// devices, also of the same GPU, are independent.
///
/// What a graph captures runs again as it was called: with the values that small arrays of the host had, in the same memory, which is
/// kept for as long as the device lives. It uses the device's workspace: launch it in the device's stream, or in order with that.
/// While a stream is captured, calls that allocate or wait are refused.
class gpu_device {
 public:
  gpu_device() : gpu_device(gpu_options{}) {}
  explicit gpu_device(const gpu_options& options)
      : device_((detail::check_device(options.device), options.device)),
        own_stream_(options.stream == nullptr ? make_stream(device_) : detail::owned_stream()),
        stream_(options.stream == nullptr ? own_stream_.get() : options.stream),
        blas_(device_, stream_, options.blas, options.blas_workspace_bytes),
        staging_(device_, stream_, options.staged_bytes),
        work_(device_, stream_) {
    const detail::device_scope scope(device_);
    if (options.workspace_bytes > 0) grow_workspace(options.workspace_bytes);
  }
  gpu_device(gpu_device&&) = default;
  gpu_device& operator=(gpu_device&&) = delete;

  int number() const { return device_; }
  cublasHandle_t blas() const { return blas_.handle(); }

  /// The stream, with the device current until the expression that it was asked for in has ended.
  class used_stream {
   public:
    used_stream(int device, cudaStream_t stream) : scope_(device), stream_(stream) {}
    operator cudaStream_t() const { return stream_; }

   private:
    detail::device_scope scope_;
    cudaStream_t stream_;
  };
  used_stream stream() const { return {device_, stream_}; }

  /// Waits for everything called.
  void finish() {
    const detail::device_scope scope(device_);
    detail::check_not_captured(stream_, "finish", "read results when the graph has run");
    detail::check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  /// Managed memory, which the host may read and write after finish(); aligned to 256 bytes.
  std::byte* allocate(std::size_t bytes) {
    const detail::device_scope scope(device_);
    detail::check_not_captured(stream_, "an allocation", "run the same pass once before, so that its memory is there");
    std::size_t free = 0, total = 0;
    detail::check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    void* memory = nullptr;
    // Managed memory beyond the device's is paged in and out, a thousand times slower: that is exhaustion too.
    const bool fits = bytes <= total && allocated_ <= total - bytes;
    const cudaError_t status =
        fits ? cudaMallocManaged(&memory, (std::max)(bytes, std::size_t{1}), cudaMemAttachGlobal) : cudaErrorMemoryAllocation;
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      fail("cuda: out of memory: ", bytes, " bytes asked for beside the ", allocated_,
           " already in use by this object; device ", device_, " has ", total, ", of which ", free,
           " are free. Fewer tokens at once need less");
    }
    detail::check_cuda(status, "cudaMallocManaged");
    detail::owned_memory owner(device_, memory);
    std::byte* const data = static_cast<std::byte*>(memory);
    allocations_.emplace(data, allocation{std::move(owner), bytes});
    allocated_ += bytes;
    return data;
  }
  void deallocate(std::byte* memory) noexcept {
    auto node = allocations_.extract(memory);
    if (node.empty()) return;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream_, &status) != cudaSuccess || status != cudaStreamCaptureStatusNone) {
      of_graphs_.insert(std::move(node));  // which may use it whenever it is launched
      return;
    }
    allocated_ -= node.mapped().bytes;
    { const detail::awaited_stream wait(device_, stream_); }  // what has been called may still use it
  }

  /// A copy of host memory that kernels may read until 16 others have been made.
  template <class X>
  const X* stage(std::span<const X> from) {
    static_assert(std::is_trivially_copyable_v<X>);
    if (from.empty()) return nullptr;
    const detail::device_scope scope(device_);
    return static_cast<const X*>(staging_.stage(from.data(), from.size_bytes()));
  }
  /// Scratch memory of one operation, until the next call; what it holds is not kept.
  template <class X>
  X* workspace(index count) {
    const std::size_t bytes = sizeof(X) * static_cast<std::size_t>(count);
    const detail::device_scope scope(device_);
    const bool captured = detail::is_captured(stream_);
    if (bytes > workspace_bytes_) {
      require(!captured, "cuda: ", bytes, " bytes of workspace while the stream is captured into a graph, and ",
              workspace_bytes_, " are planned: set gpu_options::workspace_bytes, or run the same pass once before");
      grow_workspace((std::max)(bytes, 2 * workspace_bytes_));
    }
    graph_has_workspace_ = graph_has_workspace_ || captured;
    return static_cast<X*>(workspace_.get());
  }

  /// c (m, n) (+)= op(a) op(b), op the transposition where asked for; c has elements. fp32 is not TF32; bf16 is summed in fp32.
  template <class A, class C>
  void multiply(matrix_view<const A> a, bool transposed_a, matrix_view<const A> b, bool transposed_b, matrix_view<C> c,
                bool accumulate) {
    const detail::device_scope scope(device_);
    if ((transposed_a ? a.rows : a.cols) > 0) return blas_.multiply(a, transposed_a, b, transposed_b, c, accumulate);
    // Nothing to sum.
    if (!accumulate)
      detail::check_cuda(
          cudaMemset2DAsync(c.data, sizeof(C) * static_cast<std::size_t>((std::max)(c.stride, c.cols)), 0,
                            sizeof(C) * static_cast<std::size_t>(c.cols), static_cast<std::size_t>(c.rows), stream_),
          "cudaMemset2DAsync");
  }

  /// Bytes of device memory that sort_by_key needs beside its arrays.
  template <class Key = std::int32_t>  // templates, for CUB's kernels are compiled where they are used
  std::size_t sort_bytes(index count, int bits) {
    const detail::device_scope scope(device_);
    const Key* none = nullptr;
    std::size_t bytes = 0;
    sort<Key>(nullptr, bytes, none, nullptr, nullptr, nullptr, count, bits);
    return bytes;
  }
  /// Sorts pairs by their keys, ascending; pairs of equal keys keep their order. Keys lie in [0, 2^bits), bits in 0..31 (0: all keys
  /// are 0). `keys` and `values` are kept; no two arrays overlap. `temporary`: sort_bytes(count, bits) bytes, aligned to 256.
  template <class Key>
  void sort_by_key(const Key* keys, const std::int32_t* values, Key* sorted_keys, std::int32_t* sorted_values, index count,
                   int bits, std::byte* temporary) {
    const detail::device_scope scope(device_);
    std::size_t bytes = 0;
    sort(nullptr, bytes, keys, values, sorted_keys, sorted_values, count, bits);
    sort(temporary, bytes, keys, values, sorted_keys, sorted_values, count, bits);
  }

 private:
  struct allocation {
    detail::owned_memory memory;
    std::size_t bytes = 0;
  };

  static detail::owned_stream make_stream(int device) {
    const detail::device_scope scope(device);
    cudaStream_t made = nullptr;
    detail::check_cuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return {device, made};
  }
  void grow_workspace(std::size_t bytes) {
    detail::check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    if (std::exchange(graph_has_workspace_, false)) workspaces_of_graphs_.push_back(std::move(workspace_));
    workspace_ = {}, workspace_bytes_ = 0;
    workspace_ = detail::device_memory(device_, bytes, "workspace");
    workspace_bytes_ = bytes;
  }
  template <class Key>
  void sort(void* temporary, std::size_t& bytes, const Key* keys, const std::int32_t* values, Key* sorted_keys,
            std::int32_t* sorted_values, index count, int bits) {
    cudaError_t status = cudaSuccess;
    try {
      status = cub::DeviceRadixSort::SortPairs(temporary, bytes, keys, sorted_keys, values, sorted_values,
                                               static_cast<std::int32_t>(count), 0, (std::max)(bits, 1), stream_);
    } catch (const std::exception& problem) {  // CUB has its own exceptions for some calls, and codes for others
      cudaGetLastError();
      fail("cuda: cub::DeviceRadixSort::SortPairs: ", problem.what());
    }
    detail::check_cuda(status, "cub::DeviceRadixSort::SortPairs");
  }

  int device_;
  detail::owned_stream own_stream_;
  cudaStream_t stream_;
  detail::blas blas_;
  detail::staging_ring staging_;
  detail::owned_memory workspace_;
  std::size_t workspace_bytes_ = 0, allocated_ = 0;
  bool graph_has_workspace_ = false;
  std::vector<detail::owned_memory> workspaces_of_graphs_;
  std::map<std::byte*, allocation> allocations_, of_graphs_;
  detail::awaited_stream work_;  // the first to go: nothing runs when the rest goes
};

GYRE_END

#endif
