// CUDA's own failures as gyre::error, the device that a call means, and owners of what CUDA gives out.
#pragma once

#if defined(__CUDACC__)

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <utility>

#include <gyre/core/error.hpp>

GYRE_BEGIN

namespace detail {

/// What a user can do about a failure; empty if that is nothing but reading the message.
inline const char* advice_on(cudaError_t status) {
  switch (status) {
    case cudaErrorNoDevice:
      return "; there is no GPU, or CUDA_VISIBLE_DEVICES hides it";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return "; the program has no code for this GPU: add its architecture to CMAKE_CUDA_ARCHITECTURES";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
      return "; a kernel that was started earlier has failed, and CUDA is of no more use to this process: compute-sanitizer "
             "names the kernel";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureImplicit:
      return "; this is not allowed while the stream is captured into a graph";
    case cudaErrorMemoryAllocation:
      return "; memory is exhausted";
    default:
      return "";
  }
}
/// Throws gyre::error unless `status` is success.
inline void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // the user's next question for the last error is not about this one
  fail("cuda: ", call, ": ", cudaGetErrorName(status), " (", cudaGetErrorString(status), ")", advice_on(status));
}
inline void check_cublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail("cuda: ", call, ": ", cublasGetStatusName(status), " (", cublasGetStatusString(status), ")",
       status == CUBLAS_STATUS_ALLOC_FAILED       ? "; memory is exhausted"
       : status == CUBLAS_STATUS_EXECUTION_FAILED ? "; a kernel has failed: compute-sanitizer names it"
                                                  : "");
}

/// Makes a device the calling thread's current one for a scope. Going back to a device that the process has not used makes CUDA's
/// context there: a thread that works with one device does well to make it current first.
class device_scope {
 public:
  explicit device_scope(int device) {
    check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != device)
      check_cuda(cudaSetDevice(device), "cudaSetDevice");
    else
      before_ = -1;
  }
  ~device_scope() {
    if (before_ >= 0 && cudaSetDevice(before_) != cudaSuccess) cudaGetLastError();  // nobody's error but that device's
  }
  device_scope(const device_scope&) = delete;
  device_scope& operator=(const device_scope&) = delete;

 private:
  int before_ = -1;
};

/// Owns something of a device's that `Destroy` ends.
template <class Handle, auto Destroy>
class cuda_owner {
 public:
  cuda_owner() = default;
  cuda_owner(int device, Handle handle) : device_(device), handle_(handle) {}
  cuda_owner(cuda_owner&& other) noexcept : device_(other.device_), handle_(std::exchange(other.handle_, Handle{})) {}
  cuda_owner& operator=(cuda_owner&& other) noexcept {
    cuda_owner(std::move(other)).swap(*this);
    return *this;
  }
  ~cuda_owner() {
    if (handle_ == Handle{}) return;
    int before = device_;
    cudaGetDevice(&before);
    if (before != device_) cudaSetDevice(device_);
    Destroy(handle_);
    if (before != device_) cudaSetDevice(before);
  }
  void swap(cuda_owner& other) noexcept { std::swap(device_, other.device_), std::swap(handle_, other.handle_); }

  Handle get() const { return handle_; }

 private:
  int device_ = 0;
  Handle handle_{};
};

using owned_stream = cuda_owner<cudaStream_t, cudaStreamDestroy>;
using owned_event = cuda_owner<cudaEvent_t, cudaEventDestroy>;
using owned_memory = cuda_owner<void*, cudaFree>;
using owned_host_memory = cuda_owner<void*, cudaFreeHost>;
using owned_blas = cuda_owner<cublasHandle_t, cublasDestroy>;
/// Not an owner: ends with waiting for the stream.
using awaited_stream = cuda_owner<cudaStream_t, cudaStreamSynchronize>;

/// Whether what is called now goes into a graph instead of running.
inline bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}
inline void check_not_captured(cudaStream_t stream, const char* call, const char* advice) {
  require(!is_captured(stream), "cuda: ", call, " while the stream is captured into a graph: ", advice);
}

/// `bytes` of memory that only the device reads.
inline owned_memory device_memory(int device, std::size_t bytes, const char* what) {
  const device_scope scope(device);
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    cudaGetLastError();
    cudaMemGetInfo(&free, &total);
    fail("cuda: out of memory: ", bytes, " bytes of ", what, " asked for, ", free, " of device ", device, "'s ", total,
         " are free");
  }
  check_cuda(status, "cudaMalloc");
  return {device, memory};
}

}  // namespace detail

GYRE_END

#endif
