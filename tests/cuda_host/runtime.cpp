// The runtime's functions.
#include <cuda_runtime_api.h>
#include <sanitizer/asan_interface.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "stand_in.hpp"

namespace stand_in {
namespace {

struct stream {
  int device;
};
cudaError_t last = cudaSuccess;
constexpr std::size_t alignment = 256;

void poison(bool pending) {
  for (const auto& [data, b] : now().memory)
    if (b.of == kind::device || (b.of == kind::managed && pending))
      ASAN_POISON_MEMORY_REGION(data, b.bytes);
    else
      ASAN_UNPOISON_MEMORY_REGION(data, b.bytes);
}

cudaError_t result(cudaError_t status) {
  if (status != cudaSuccess) last = status;
  return status;
}
cudaError_t refused(const std::string& what, cudaError_t status) {
  refuse(what);
  return result(status);
}
/// Captures forbid what would act at once.
bool forbidden(const char* call) {
  if (!now().capturing) return false;
  now().capture_broken = true;
  refused(std::string(call) + " during capture", cudaErrorStreamCaptureUnsupported);
  return true;
}

cudaError_t allocate(const char* call, void** to, std::size_t bytes, kind of) {
  if (forbidden(call)) return cudaErrorStreamCaptureUnsupported;
  ++now().allocations;
  if (fails(call)) return result(cudaErrorMemoryAllocation);
  if (bytes == 0) return refused(std::string(call) + " of 0 bytes", cudaErrorInvalidValue);
  std::size_t held = 0;
  for (const auto& [data, b] : now().memory) held += b.bytes;
  if (bytes > now().total - held) return result(cudaErrorMemoryAllocation);
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes) != 0) return result(cudaErrorMemoryAllocation);
  std::memset(memory, 0, bytes);
  now().memory.emplace(static_cast<std::byte*>(memory), block{of, bytes});
  if (of == kind::device) ASAN_POISON_MEMORY_REGION(memory, bytes);
  *to = memory;
  return cudaSuccess;
}
/// Frees even where it is made to fail: what leaks then is not the caller's fault.
cudaError_t release(const char* call, void* memory, bool pinned) {
  if (forbidden(call)) return cudaErrorStreamCaptureUnsupported;
  const auto at = now().memory.find(static_cast<std::byte*>(memory));
  if (at == now().memory.end() || (at->second.of == kind::pinned) != pinned)
    return refused(std::string(call) + " of what it did not give", cudaErrorInvalidValue);
  if (now().pending) refuse(std::string(call) + " while work is under way");
  ASAN_UNPOISON_MEMORY_REGION(memory, at->second.bytes);
  now().memory.erase(at);
  std::free(memory);
  return fails(call) ? result(cudaErrorUnknown) : cudaSuccess;
}
template <class Handle>
cudaError_t destroy(const char* call, std::set<void*>& all, Handle handle) {
  if (all.erase(handle) == 0) return refused(std::string(call) + " of what it did not give", cudaErrorInvalidResourceHandle);
  std::free(handle);
  return fails(call) ? result(cudaErrorUnknown) : cudaSuccess;
}
template <class Handle>
cudaError_t create(const char* call, std::set<void*>& all, Handle* to) {
  if (fails(call)) return result(cudaErrorUnknown);
  stream* const made = static_cast<stream*>(std::malloc(sizeof(stream)));
  made->device = now().current;
  all.insert(made);
  *to = reinterpret_cast<Handle>(made);
  return cudaSuccess;
}
cudaError_t wait(const char* call) {
  if (forbidden(call)) return cudaErrorStreamCaptureUnsupported;
  const bool failed = fails(call);
  ++now().waits;
  now().pending = false;
  poison(false);
  return failed ? result(cudaErrorLaunchFailure) : cudaSuccess;
}
cudaError_t launch(const char* call, const void* kernel, dim3 grid, dim3 block, std::size_t, cudaStream_t s) {
  if (fails(call)) return result(cudaErrorLaunchOutOfResources);
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  if (kernel == nullptr || threads == 0 || threads > 1024 || block.z > 64 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
    return refused(std::string(call) + ": grid (" + std::to_string(grid.x) + ", " + std::to_string(grid.y) + ", " +
                       std::to_string(grid.z) + "), " + std::to_string(threads) + " threads",
                   cudaErrorInvalidConfiguration);
  enqueue(s, call);
  return cudaSuccess;
}

}  // namespace

machine& now() {
  static machine m;
  return m;
}
void restart() {
  now() = machine{};
  last = cudaSuccess;
}
bool fails(const char* call) {
  if (now().calls++ != now().fails) return false;
  now().failed = call;
  return true;
}
void refuse(const std::string& what) { now().refused.push_back(what); }
int device_of(const void* s) { return static_cast<const stream*>(s)->device; }
void enqueue(const void* s, const char* call) {
  if (!now().streams.contains(const_cast<void*>(s)))
    refuse(std::string(call) + " in a stream that is none");
  else if (device_of(s) != now().current)
    refuse(std::string(call) + " in a stream of device " + std::to_string(device_of(s)) + " while " +
           std::to_string(now().current) + " is current");
  if (now().capturing || now().pending) return;
  now().pending = true;
  poison(true);
}
bool usable(const void* from, std::size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(from);
  auto at = now().memory.upper_bound(const_cast<std::byte*>(first));
  if (at == now().memory.begin()) return false;
  --at;
  return first + bytes <= at->first + at->second.bytes && at->second.of != kind::pinned;
}
opened_memory::opened_memory() {
  for (const auto& [data, b] : now().memory) ASAN_UNPOISON_MEMORY_REGION(data, b.bytes);
}
opened_memory::~opened_memory() { poison(now().pending); }

}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaMalloc(void** to, std::size_t bytes) { return allocate("cudaMalloc", to, bytes, kind::device); }
cudaError_t cudaMallocHost(void** to, std::size_t bytes) { return allocate("cudaMallocHost", to, bytes, kind::pinned); }
cudaError_t cudaMallocManaged(void** to, std::size_t bytes, unsigned) {
  return allocate("cudaMallocManaged", to, bytes, kind::managed);
}
cudaError_t cudaFree(void* memory) { return release("cudaFree", memory, false); }
cudaError_t cudaFreeHost(void* memory) { return release("cudaFreeHost", memory, true); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (fails("cudaMemGetInfo")) return result(cudaErrorUnknown);
  *free = *total = now().total;
  for (const auto& [data, b] : now().memory) *free -= b.bytes;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind direction, cudaStream_t s) {
  if (fails("cudaMemcpyAsync")) return result(cudaErrorUnknown);
  const bool up = usable(to, bytes), down = usable(from, bytes);
  if ((direction == cudaMemcpyHostToDevice && (!up || down)) || (direction == cudaMemcpyDefault && !up && !down))
    return refused("cudaMemcpyAsync: wrong direction, or out of range", cudaErrorInvalidValue);
  // A graph copies when it runs: from wherever the host's memory then is.
  if (now().capturing && !(up && down)) refuse("cudaMemcpyAsync of memory of the host during capture");
  {
    const opened_memory own;
    std::memcpy(to, from, bytes);
  }
  ++now().copies;
  enqueue(s, "cudaMemcpyAsync");
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t s) {
  if (fails("cudaMemsetAsync")) return result(cudaErrorUnknown);
  if (!usable(to, bytes)) return refused("cudaMemsetAsync: out of range", cudaErrorInvalidValue);
  {
    const opened_memory own;
    std::memset(to, value, bytes);
  }
  enqueue(s, "cudaMemsetAsync");
  return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height, cudaStream_t s) {
  if (fails("cudaMemset2DAsync")) return result(cudaErrorUnknown);
  if (width > pitch || !usable(to, height > 0 ? (height - 1) * pitch + width : 0))
    return refused("cudaMemset2DAsync: out of range", cudaErrorInvalidValue);
  {
    const opened_memory own;
    for (std::size_t i = 0; i < height; ++i) std::memset(static_cast<std::byte*>(to) + i * pitch, value, width);
  }
  enqueue(s, "cudaMemset2DAsync");
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* to, unsigned) {
  return create("cudaStreamCreateWithFlags", now().streams, to);
}
cudaError_t cudaStreamDestroy(cudaStream_t s) { return destroy("cudaStreamDestroy", now().streams, s); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return wait("cudaStreamSynchronize"); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* to, unsigned) { return create("cudaEventCreateWithFlags", now().events, to); }
cudaError_t cudaEventDestroy(cudaEvent_t e) { return destroy("cudaEventDestroy", now().events, e); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  if (now().capturing) refuse("cudaEventRecord during capture: the event then belongs to the graph");
  return fails("cudaEventRecord") ? result(cudaErrorUnknown) : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  if (forbidden("cudaEventSynchronize")) return cudaErrorStreamCaptureUnsupported;
  return fails("cudaEventSynchronize") ? result(cudaErrorUnknown) : cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  now().capturing = true, now().capture_broken = false;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  now().capturing = false;
  *graph = nullptr;
  if (now().capture_broken) return result(cudaErrorStreamCaptureInvalidated);
  return create("cudaStreamEndCapture", now().graphs, graph);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return destroy("cudaGraphDestroy", now().graphs, graph); }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  if (fails("cudaStreamIsCapturing")) return result(cudaErrorUnknown);
  *status = now().capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (!now().has_driver) return result(cudaErrorInsufficientDriver);
  if (fails("cudaGetDeviceCount")) return result(cudaErrorUnknown);
  *count = now().devices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  if (fails("cudaGetDevice")) return result(cudaErrorUnknown);
  *device = now().current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= now().devices) return refused("cudaSetDevice", cudaErrorInvalidDevice);
  const bool failed = fails("cudaSetDevice");
  // Made to fail it still goes back: the caller can do nothing about a thread that may not.
  if (!failed || device == 0) now().current = device;
  return failed ? result(cudaErrorUnknown) : cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (fails("cudaDeviceGetAttribute")) return result(cudaErrorUnknown);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = now().capability / 10;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = now().capability % 10;
      break;
    case cudaDevAttrConcurrentManagedAccess:
      *value = now().concurrent;
      break;
    default:
      *value = 1;
  }
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = now().has_driver ? 13000 : 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  if (!now().has_code) return result(cudaErrorNoKernelImageForDevice);
  if (fails("cudaFuncGetAttributes")) return result(cudaErrorUnknown);
  *attributes = {};
  attributes->ptxVersion = attributes->binaryVersion = now().compiled_for;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return fails("cudaFuncSetAttribute") ? result(cudaErrorUnknown) : cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, std::size_t, unsigned) {
  if (fails("cudaOccupancyMaxActiveBlocksPerMultiprocessor")) return result(cudaErrorUnknown);
  *blocks = 1;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* kernel, void**) {
  return launch("cudaLaunchKernelExC", kernel, c->gridDim, c->blockDim, c->dynamicSmemBytes, c->stream);
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void**, std::size_t shared, cudaStream_t s) {
  return launch("cudaLaunchKernel", kernel, grid, block, shared, s);
}

cudaError_t cudaGetLastError() { return std::exchange(last, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last; }
const char* cudaGetErrorName(cudaError_t status) {
  return status == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorOfTheStandIn";
}
const char* cudaGetErrorString(cudaError_t) { return "made to fail"; }

// What nvcc writes into every object.
namespace {
dim3 pushed_grid, pushed_block;
std::size_t pushed_shared = 0;
void* pushed_stream = nullptr;
void* binary = nullptr;
}  // namespace
void** __cudaRegisterFatBinary(void*) { return &binary; }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, cudaStream_t s) {
  pushed_grid = grid, pushed_block = block, pushed_shared = shared, pushed_stream = s;
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* s) {
  *grid = pushed_grid, *block = pushed_block, *shared = pushed_shared;
  std::memcpy(s, &pushed_stream, sizeof(pushed_stream));
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(void** kernel, const void* function) {
  *kernel = const_cast<void*>(function);
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(void* kernel, dim3 grid, dim3 block, void**, std::size_t shared, cudaStream_t s) {
  return launch("a launch of CUB's", kernel, grid, block, shared, s);
}

}  // extern "C"
