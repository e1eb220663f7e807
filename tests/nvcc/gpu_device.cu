// What gpu_device adds to kernels: memory, staged arrays, products, sorting, graphs.
#include <algorithm>
#include <iostream>
#include <numeric>
#include <vector>

#include <gyre/backend/cuda/ranges.hpp>

#include "nvcc/gpu_calls.hpp"
#include "nvcc/on_gpu.hpp"
#include "nvcc/products.hpp"

namespace gyre_test {

gpu_memory::gpu_memory() : device_(std::make_shared<gyre::cuda>()) {}
std::byte* gpu_memory::allocate(std::size_t bytes) { return static_cast<gyre::cuda*>(device())->allocate(bytes); }
void gpu_memory::deallocate(std::byte* memory, std::size_t bytes) noexcept {
  static_cast<gyre::cuda*>(device())->deallocate(memory, bytes);
}
void gpu_memory::finish() { static_cast<gyre::cuda*>(device())->finish(); }
index gpu_memory::add_scaled_backward_workspace(index rows) { return gyre::cuda::add_scaled_backward_workspace(rows); }
index gpu_memory::rms_norm_backward_workspace(index rows, index cols) {
  return gyre::cuda::rms_norm_backward_workspace(rows, cols);
}
index gpu_memory::column_sum_workspace(index rows, index cols) { return gyre::cuda::column_sum_workspace(rows, cols); }
index gpu_memory::attention_backward_workspace(index rows, gyre::attention_shape shape) {
  return gyre::cuda::attention_backward_workspace(rows, shape);
}

TEST_CASE("there is a GPU", "[cuda]") {
  std::optional<gyre::cuda> device = on_gpu<gyre::cuda>();
  if (!device) return;
  cudaDeviceProp properties{};
  REQUIRE(cudaGetDeviceProperties(&properties, device->device().number()) == cudaSuccess);
  std::cout << properties.name << ", compute capability " << properties.major << "." << properties.minor << ", "
            << properties.totalGlobalMem / 1000000 << " MB\n";
}

TEMPLATE_TEST_CASE("products of gpu_device, in both orders of storage", "[cuda]", float, double) {
  std::optional<gyre::cuda> device = on_gpu<gyre::cuda>();
  if (!device) return;
  check_products<TestType, TestType>(*device, 7, 33, 5);
  check_products<TestType, TestType>(*device, 1, 1, 1);
  check_products<TestType, TestType>(*device, 3, 2, 0);
}

TEST_CASE("products of gpu_device in bf16 are summed in fp32", "[cuda]") {
  std::optional<gyre::cuda> device = on_gpu<gyre::cuda>();
  if (!device) return;
  check_products<__nv_bfloat16, float>(*device, 7, 33, 5);
  check_products<__nv_bfloat16, __nv_bfloat16>(*device, 7, 33, 5);
  numbers<__nv_bfloat16> ones(*device, 3000);
  numbers<float> sum(*device, 1);
  for (index i = 0; i < 3000; ++i) ones[i] = as<__nv_bfloat16>(1);
  device->device().multiply<__nv_bfloat16, float>({ones.data(), 1, 3000}, false, {ones.data(), 1, 3000}, true,
                                                  {sum.data(), 1, 1}, false);
  device->finish();
  CHECK(sum[0] == 3000);  // bf16 stops at 256
}

TEST_CASE("operations in ranges of NVTX are those without", "[cuda]") {
  std::optional<gyre::cuda> device = on_gpu<gyre::cuda>();
  if (!device) return;
  static_assert(gyre::backend<gyre::ranged<gyre::cuda>>);
  gyre::ranged<gyre::cuda> named(*device);
  numbers<float> x(*device, 33), y(*device, 33);
  for (index i = 0; i < 33; ++i) x[i] = static_cast<float>(i), y[i] = 1;
  named.add(matrix_view<const float>(x.data(), 1, 33), matrix_view<float>(y.data(), 1, 33));
  named.finish();
  for (index i = 0; i < 33; ++i) CHECK(y[i] == static_cast<float>(i + 1));
}

TEST_CASE("gpu_device sorts pairs stably", "[cuda]") {
  std::optional<gyre::cuda> device = on_gpu<gyre::cuda>();
  if (!device) return;
  for (const auto& [count, bits] : {std::pair<index, int>{0, 3}, {1, 0}, {1000, 3}, {40000, 17}}) {
    numbers<std::int32_t> keys(*device, count), values(*device, count), sorted_keys(*device, count),
        sorted_values(*device, count);
    for (index i = 0; i < count; ++i) keys[i] = static_cast<std::int32_t>(i * 7919 % (index{1} << bits));
    for (index i = 0; i < count; ++i) values[i] = static_cast<std::int32_t>(i);
    const std::size_t bytes = device->device().sort_bytes(count, bits);
    std::byte* const temporary = device->device().workspace<std::byte>(static_cast<index>(bytes));
    device->device().sort_by_key(keys.data(), values.data(), sorted_keys.data(), sorted_values.data(), count, bits, temporary);
    device->finish();
    std::vector<std::int32_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return keys[a] < keys[b]; });
    CHECK(std::equal(order.begin(), order.end(), sorted_values.data()));
  }
}

TEST_CASE("arrays of the host are staged as many times as the ring comes round, and of any size", "[cuda]") {
  std::optional<gyre::cuda> device = on_gpu<gyre::cuda>();
  if (!device) return;
  constexpr index rows = 20000;
  numbers<float> x(*device, rows), y(*device, rows);
  for (index i = 0; i < rows; ++i) x[i] = static_cast<float>(i);
  std::vector<index> from;
  for (const index count : {index{1}, index{100}, rows})
    for (index turn = 0; turn < 40; ++turn) {
      from.resize(static_cast<std::size_t>(count));
      for (index i = 0; i < count; ++i) from[static_cast<std::size_t>(i)] = (i * 31 + turn) % rows;
      device->gather(matrix_view<const float>(x.data(), rows, 1), from, matrix_view<float>(y.data(), count, 1));
      std::fill(from.begin(), from.end(), index{0});  // may be written as soon as the call has returned
      if (turn % 13 != 12) continue;
      device->finish();
      for (index i = 0; i < count; ++i)
        if (y[i] != static_cast<float>((i * 31 + turn) % rows)) FAIL("row " << i << " of turn " << turn);
    }
}

TEST_CASE("a captured graph runs again what was called, and what it cannot is refused", "[cuda]") {
  std::optional<gyre::cuda> device = on_gpu<gyre::cuda>();
  if (!device) return;
  numbers<float> x(*device, 900), y(*device, 900);
  for (index i = 0; i < 900; ++i) x[i] = static_cast<float>(i);
  std::vector<index> from(900);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<index>(899 - i);
  const cudaStream_t stream = device->device().stream();
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  device->gather(matrix_view<const float>(x.data(), 900, 1), from, matrix_view<float>(y.data(), 900, 1));
  device->add(matrix_view<const float>(x.data(), 900, 1), matrix_view<float>(y.data(), 900, 1));
  CHECK_THROWS_WITH(device->allocate(100), Catch::Contains("captured"));
  CHECK_THROWS_WITH(device->finish(), Catch::Contains("captured"));
  CHECK_THROWS_WITH(device->device().workspace<float>(1 << 20), Catch::Contains("4194304 bytes of workspace"));
  std::vector<index> large(100000);
  CHECK_THROWS_WITH(device->device().stage(std::span<const index>(large)), Catch::Contains("800000 bytes"));
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphExec_t run = nullptr;
  REQUIRE(cudaGraphInstantiate(&run, graph, 0) == cudaSuccess);
  std::fill(from.begin(), from.end(), index{0});  // the graph has the old ones
  for (int turn = 0; turn < 3; ++turn) {
    for (index i = 0; i < 900; ++i) x[i] = static_cast<float>(i * turn);
    REQUIRE(cudaGraphLaunch(run, stream) == cudaSuccess);
    device->finish();
    index wrong = 0;
    for (index i = 0; i < 900; ++i) wrong += y[i] != static_cast<float>(899 * turn);
    CHECK(wrong == 0);
  }
  cudaGraphExecDestroy(run);
  cudaGraphDestroy(graph);
}

TEST_CASE("devices are independent, and the thread's current one stays", "[cuda]") {
  std::optional<gyre::cuda> device = on_gpu<gyre::cuda>();
  if (!device) return;
  int count = 0, current = -1;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK_THROWS_WITH(gyre::cuda(std::make_shared<gyre::gpu_device>(gyre::gpu_options{.device = count})),
                    Catch::Contains("device " + std::to_string(count) + " asked for"));
  gyre::cuda last(std::make_shared<gyre::gpu_device>(gyre::gpu_options{.device = count - 1}));
  numbers<float> here(*device, 100), there(last, 100);
  device->fill(matrix_view<float>(here.data(), 1, 100), 1.0f);
  last.fill(matrix_view<float>(there.data(), 1, 100), 2.0f);
  device->finish(), last.finish();
  CHECK(here[99] == 1);
  CHECK(there[99] == 2);
  REQUIRE(cudaGetDevice(&current) == cudaSuccess);
  CHECK(current == 0);
}

TEST_CASE("memory that a GPU does not have is refused with numbers", "[cuda]") {
  std::optional<gyre::cuda> device = on_gpu<gyre::cuda>();
  if (!device) return;
  CHECK_THROWS_WITH(device->allocate(std::size_t{1} << 50), Catch::Contains("out of memory: 1125899906842624 bytes"));
}

}  // namespace gyre_test
