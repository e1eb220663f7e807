#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "nvcc/products.hpp"
#include "stand_in.hpp"

namespace gyre_test {
namespace {

using stand_in::now;

gyre::cuda device_with(const gyre::gpu_options& options) { return gyre::cuda(std::make_shared<gyre::gpu_device>(options)); }

/// Everything that the backend asks of the runtime and of cuBLAS.
void use_everything(int number) {
  gyre::cuda device =
      device_with({.device = number, .workspace_bytes = 1000, .staged_bytes = 512, .blas_workspace_bytes = 4096});
  {
    const numbers<float> x(device, 1000), y(device, 1000);
    const matrix_view<const float> read(x.data(), 100, 10);
    const matrix_view<float> written(y.data(), 100, 10);
    std::vector<index> from(100, 3);
    device.fill(matrix_view<float>(x.data(), 100, 10), 1.0f);
    for (int n = 0; n < 20; ++n) device.gather(read, std::span<const index>(from).first(10), written.slice(0, 10));
    device.gather(read, from, written);  // larger than the ring's slots
    device.device().multiply<float, float>(read, false, read, true, {y.data(), 10, 10}, false);
    device.device().multiply<float, float>({x.data(), 10, 0}, false, {x.data(), 0, 10}, false, {y.data(), 10, 10}, false);
    device.device().workspace<float>(5000);
    const numbers<std::int32_t> keys(device, 500), sorted(device, 500);
    const std::size_t bytes = device.device().sort_bytes(500, 9);
    device.device().sort_by_key(keys.data(), keys.data() + 100, sorted.data(), sorted.data() + 100, 100, 9,
                                device.device().workspace<std::byte>(static_cast<index>(bytes)));
    {
      const cudaStream_t stream = device.device().stream();
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
      struct end {
        cudaStream_t stream;
        ~end() {
          cudaGraph_t graph = nullptr;
          cudaStreamEndCapture(stream, &graph);
          if (graph != nullptr) cudaGraphDestroy(graph);
        }
      } const ending{stream};
      device.gather(read, from, written);
      device.add(read, written);
    }
    device.finish();
  }
  gyre::gpu_device moved(gyre::gpu_options{.device = number, .staged_bytes = 512, .blas_workspace_bytes = 4096});
  const gyre::gpu_device there(std::move(moved));
}

}  // namespace

TEST_CASE("each call to CUDA fails once in turn: a clear error, no leak, no crash", "[cuda]") {
  for (const int number : {0, 1}) {
    // CUB asks each device once what it is, and waits for ever for the answer if the first call that asked failed (CCCL 3.0).
    stand_in::restart();
    use_everything(number);
    long failures = 0, errors = 0;
    for (long n = 0;; ++n) {
      stand_in::restart();
      now().fails = n;
      std::string said;
      try {
        use_everything(number);
      } catch (const gyre::error& error) {
        said = error.what();
      }
      CAPTURE(n, now().failed, said, now().refused);
      REQUIRE(now().held() == 0);
      REQUIRE(now().current == 0);
      if (now().failed.empty()) {
        REQUIRE(said.empty());
        REQUIRE(now().refused.empty());
        break;
      }
      ++failures;
      if (said.empty()) continue;  // in a destructor, which has nobody to tell
      ++errors;
      REQUIRE((said.find("cuda: ") == 0 || said.find("simt: ") == 0));
      if (now().failed != "a launch of CUB's") REQUIRE(said.size() > 30);
    }
    CHECK(failures > 250);
    CHECK(errors > 180);
    INFO(failures << " calls, " << errors << " errors");
    CHECK(errors < failures);
  }
}

TEMPLATE_TEST_CASE("products as cuBLAS is asked for them, in both orders of storage", "[cuda]", float, double) {
  stand_in::restart();
  {
    gyre::cuda device;
    check_products<TestType, TestType>(device, 7, 33, 5);
    check_products<TestType, TestType>(device, 1, 1, 1);
    check_products<TestType, TestType>(device, 3, 2, 0);
    CHECK(now().products == 16);
  }
  CHECK(now().refused == std::vector<std::string>());
  CHECK(now().held() == 0);
}

TEST_CASE("products in bf16 as cuBLAS is asked for them", "[cuda]") {
  stand_in::restart();
  {
    gyre::cuda device;
    check_products<__nv_bfloat16, float>(device, 7, 33, 5);
    check_products<__nv_bfloat16, __nv_bfloat16>(device, 7, 33, 5);
  }
  CHECK(now().refused == std::vector<std::string>());
}

TEST_CASE("the user's stream and handle are used and given back", "[cuda]") {
  stand_in::restart();
  cudaStream_t stream = nullptr, before = nullptr, after = nullptr;
  cublasHandle_t handle = nullptr;
  cudaStreamCreateWithFlags(&stream, 0);
  cudaStreamCreateWithFlags(&before, 0);
  cublasCreate(&handle);
  cublasSetStream(handle, before);
  cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH);
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_ALLOWED);
  {
    gyre::cuda device = device_with({.stream = stream, .blas = handle});
    CHECK(now().streams.size() == 2);
    CHECK(now().blas.size() == 1);
    CHECK(device.device().stream() == stream);
    check_products<float, float>(device, 2, 3, 4);
  }
  cublasGetStream(handle, &after);
  CHECK(after == before);
  cublasMath_t math{};
  cublasPointerMode_t pointers{};
  cublasAtomicsMode_t atomics{};
  cublasGetMathMode(handle, &math);
  cublasGetPointerMode(handle, &pointers);
  cublasGetAtomicsMode(handle, &atomics);
  CHECK(math == CUBLAS_TF32_TENSOR_OP_MATH);
  CHECK(pointers == CUBLAS_POINTER_MODE_DEVICE);
  CHECK(atomics == CUBLAS_ATOMICS_ALLOWED);
  cublasDestroy(handle);
  cudaStreamDestroy(stream);
  cudaStreamDestroy(before);
  CHECK(now().held() == 0);
  CHECK(now().refused == std::vector<std::string>());
}

TEST_CASE("machines on which the backend does not run say why", "[cuda]") {
  stand_in::restart();
  CHECK_THROWS_WITH(device_with({.device = 7}), Catch::Contains("device 7 asked for; this process has 2 of them"));
  now().capability = 75;
  CHECK_THROWS_WITH(gyre::cuda(), Catch::Contains("compute capability 7.5; 8.0 is the least"));
  now().capability = 90, now().has_code = false;
  CHECK_THROWS_WITH(gyre::cuda(), Catch::Contains("add 90 to CMAKE_CUDA_ARCHITECTURES"));
  now().has_code = true, now().compiled_for = 75;
  CHECK_THROWS_WITH(gyre::cuda(), Catch::Contains("compiled for compute capability 7.5") && Catch::Contains("best to 90"));
  now().compiled_for = 80, now().concurrent = false;
  CHECK_THROWS_WITH(gyre::cuda(), Catch::Contains("only while nothing runs"));
  now().concurrent = true;
  now().has_driver = false;
  CHECK_THROWS_WITH(gyre::cuda(), Catch::Contains("no driver"));
  CHECK(now().held() == 0);
}

TEST_CASE("memory runs out with numbers", "[cuda]") {
  stand_in::restart();
  gyre::cuda device;
  CHECK_THROWS_WITH(device.allocate(std::size_t{1} << 40),
                    Catch::Contains("1099511627776 bytes asked for beside the 0") && Catch::Contains("has 1073741824"));
  std::byte* const half = device.allocate(std::size_t{1} << 29);
  CHECK_THROWS_WITH(device.allocate(std::size_t{600} << 20), Catch::Contains("beside the 536870912 already in use"));
  CHECK_THROWS_WITH(device.device().workspace<double>(1 << 28), Catch::Contains("2147483648 bytes of workspace"));
  device.deallocate(half, std::size_t{1} << 29);
  device.deallocate(device.allocate(std::size_t{600} << 20), 0);
  device.device().workspace<double>(100);
}

TEST_CASE("what a capture forbids is refused before CUDA hears of it", "[cuda]") {
  stand_in::restart();
  gyre::cuda device;
  std::byte* const freed = device.allocate(100);
  const cudaStream_t stream = device.device().stream();
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  CHECK_THROWS_WITH(device.allocate(100), Catch::Contains("captured"));
  CHECK_THROWS_WITH(device.finish(), Catch::Contains("captured"));
  CHECK_THROWS_WITH(device.device().workspace<float>(1), Catch::Contains("4 bytes of workspace"));
  const std::vector<index> large(100000);
  CHECK_THROWS_WITH(device.device().stage(std::span<const index>(large)), Catch::Contains("800000 bytes"));
  device.deallocate(freed, 100);  // not as long as there may be a graph that uses it
  CHECK(now().memory.contains(freed));
  CHECK(now().refused == std::vector<std::string>());
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphDestroy(graph);
  device.finish();
  CHECK(now().memory.contains(freed));
}

TEST_CASE("memory that a graph may use stays when the device needs more", "[cuda]") {
  stand_in::restart();
  {
    gyre::cuda device;
    const auto* const eager = reinterpret_cast<std::byte*>(device.device().workspace<float>(100));
    device.device().workspace<float>(1000);
    CHECK_FALSE(now().memory.contains(const_cast<std::byte*>(eager)));
    const cudaStream_t stream = device.device().stream();
    const std::vector<index> small(10), large(100000);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    auto* const work = reinterpret_cast<std::byte*>(device.device().workspace<float>(10));
    device.device().stage(std::span<const index>(small));
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    const auto device_blocks = [] {
      return std::count_if(now().memory.begin(), now().memory.end(),
                           [](const auto& m) { return m.second.of == stand_in::kind::device; });
    };
    const auto before = device_blocks();
    device.device().workspace<float>(100000);
    device.device().stage(std::span<const index>(large));
    CHECK(now().memory.contains(work));
    CHECK(device_blocks() == before + 2);
    cudaGraphDestroy(graph);
  }
  CHECK(now().held() == 0);
  CHECK(now().refused == std::vector<std::string>());
}

TEST_CASE("the stand-in itself finds what the backend must not do", "[cuda]") {
  stand_in::restart();
  {
    gyre::cuda device;
    const numbers<float> x(device, 16);
    CHECK(__asan_address_is_poisoned(x.data()) == 0);
    device.fill(matrix_view<float>(x.data(), 4, 4), 1.0f);
    CHECK(__asan_address_is_poisoned(x.data()) == 1);  // the host reads before it has waited
    device.finish();
    CHECK(__asan_address_is_poisoned(x.data()) == 0);
    CHECK(__asan_address_is_poisoned(device.device().workspace<float>(10)) == 1);
    const cudaStream_t stream = device.device().stream();
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, 10) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
    float here = 0;
    cudaMemcpyAsync(x.data(), &here, sizeof(here), cudaMemcpyHostToDevice, stream);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    cudaGetLastError();
    now().current = 1;
    device.fill(matrix_view<float>(x.data(), 4, 4), 1.0f);  // the backend sets the current device
    gyre::simt::launch(gyre::detail::probe<>, 1, 1, 0, stream);
    now().current = 0;
  }
  CHECK(now().refused == std::vector<std::string>{"cudaMalloc during capture", "cudaStreamSynchronize during capture",
                                                  "cudaMemcpyAsync of memory of the host during capture",
                                                  "cudaLaunchKernelExC in a stream of device 0 while 1 is current"});
}

}  // namespace gyre_test
