#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <gyre/simt.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace simt = gyre::simt;
using Catch::Matchers::Contains;

template <int = 0>
GYRE_KERNEL void log_blocks(std::uint64_t* log, unsigned* count) {
  if (threadIdx.x == 0)
    log[atomicAdd(count, 1u)] = blockIdx.x + std::uint64_t{gridDim.x} * (blockIdx.y + std::uint64_t{gridDim.y} * blockIdx.z);
}
std::vector<std::uint64_t> blocks_run(simt::machine& m, dim3 grid) {
  auto log = m.allocate<std::uint64_t>(1000);
  auto count = m.allocate<unsigned>(1);
  count[0] = 0;
  simt::launch(log_blocks<>, grid, 32, 0, &m, log.data(), count.data());
  return {log.begin(), log.begin() + count[0]};
}

template <int = 0>
GYRE_KERNEL void log_threads(unsigned* log, unsigned* count) {
  log[atomicAdd(count, 1u)] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z;
}

template <class T>
GYRE_KERNEL void fill(T* x, std::uint64_t n) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) x[i] = static_cast<T>(i % 251);
}

template <int = 0>
GYRE_KERNEL void throw_it() {
  if (threadIdx.x == 3) throw std::runtime_error("from a kernel");
  __syncthreads();
}

template <int = 0>
GYRE_KERNEL void nested(simt::machine* m) {
  simt::launch(throw_it<>, 1, 1, 0, m);
}

template <int = 0>
GYRE_KERNEL void needs_dynamic(int* out) {
  GYRE_DYNAMIC_SHARED(int, all);
  all[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x];
}

template <int = 0>
GYRE_KERNEL void misses_barrier(int* out) {
  if (threadIdx.x < 8) __syncthreads();
  out[threadIdx.x] = 1;
}

}  // namespace

TEST_CASE("simt: blocks run in the order of the settings, each once") {
  simt::machine m;
  std::vector<std::uint64_t> all(24);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  CHECK(blocks_run(m, dim3(2, 3, 4)) == all);

  m.settings.order = simt::thread_order::reverse;
  CHECK(blocks_run(m, dim3(2, 3, 4)) == std::vector<std::uint64_t>(all.rbegin(), all.rend()));

  m.settings.order = simt::thread_order::random;
  const auto once = blocks_run(m, dim3(2, 3, 4));
  CHECK(once != all);
  CHECK(blocks_run(m, dim3(2, 3, 4)) == once);
  m.settings.seed = 2;
  auto other = blocks_run(m, dim3(2, 3, 4));
  CHECK(other != once);
  std::sort(other.begin(), other.end());
  CHECK(other == all);
}

TEST_CASE("simt: threads have CUDA's coordinates") {
  simt::machine m;
  auto log = m.allocate<unsigned>(24), count = m.allocate<unsigned>(1);
  count[0] = 0;
  simt::launch(log_threads<>, 1, dim3(4, 3, 2), 0, &m, log.data(), count.data());
  REQUIRE(count[0] == 24);
  CHECK((log[0] == 0 && log[3] == 3 && log[4] == 10 && log[23] == 123));
  m.settings.order = simt::thread_order::reverse;
  count[0] = 0;
  simt::launch(log_threads<>, 1, dim3(4, 3, 2), 0, &m, log.data(), count.data());
  CHECK((log[0] == 123 && log[23] == 0));
}

TEST_CASE("simt: a window runs a part of a grid that could not run whole") {
  simt::machine m;
  const std::uint64_t bytes = (std::uint64_t{1} << 33) + 77;
  auto x = m.allocate<unsigned char>(bytes, "x");
  const unsigned blocks = static_cast<unsigned>((bytes + 255) / 256);
  m.settings.blocks = {blocks - 2, 2};
  simt::launch(fill<unsigned char>, blocks, 256, 0, &m, x.data(), bytes);
  CHECK(m.counts().blocks == 2);
  for (std::uint64_t i = bytes - 256; i < bytes; ++i)
    if (x[i] != i % 251) FAIL("element " << i);
  CHECK(x[0] == 0);

  m.settings.blocks = {blocks, 5};  // behind the last one
  simt::launch(fill<unsigned char>, blocks, 256, 0, &m, x.data(), bytes);
  CHECK(m.counts().blocks == 2);
}

TEST_CASE("simt: a grid of size 0 runs nothing") {
  simt::machine m;
  simt::launch(throw_it<>, dim3(0), 32, 0, &m);
  simt::launch(throw_it<>, dim3(4, 0), 32, 0, &m);
  CHECK(m.counts().blocks == 0);
}

TEST_CASE("simt: a launch outside of an architecture's limits is refused with its numbers") {
  auto run = [](const simt::architecture& target, std::size_t bytes) {
    simt::machine m;
    m.settings.target = target;
    auto out = m.allocate<int>(32);
    simt::launch(needs_dynamic<>, 1, 32, bytes, &m, out.data());
    CHECK(out[0] == 31);
  };
  for (const simt::architecture& a : simt::architectures) {
    INFO(a.name);
    run(a, a.shared_per_block);
    CHECK_THROWS_WITH(run(a, a.shared_per_block + 1),
                      Contains(a.name) && Contains(std::to_string(a.shared_per_block + 1)) && Contains("needs_dynamic"));
  }
  CHECK(simt::sm_90.shared_per_block == 232448);  // bytes, as cudaDevAttrMaxSharedMemoryPerBlockOptin says of an H100
}

TEST_CASE("simt: what a kernel throws comes out of the launch, and the machine goes on") {
  simt::machine m;
  CHECK_THROWS_WITH(simt::launch(throw_it<>, 2, 32, 0, &m), "from a kernel");
  CHECK_THROWS_WITH(simt::launch(nested<>, 1, 1, 0, &m, &m), Contains("cannot launch"));
  auto out = m.allocate<int>(16);
  simt::launch(needs_dynamic<>, 1, 16, 64, &m, out.data());
  CHECK(out[15] == 0);
}

TEST_CASE("simt: a fault is an error with its place, or stays in the machine") {
  simt::machine m;
  auto out = m.allocate<int>(16);
  try {
    simt::launch(misses_barrier<>, 3, 16, 0, &m, out.data());
    FAIL("nothing was thrown");
  } catch (const simt::fault_error& e) {
    REQUIRE(e.faults().size() == 1);
    const simt::fault& f = e.faults()[0];
    CHECK(f.kind == simt::fault_kind::exited_barrier);
    CHECK_THAT(f.kernel, Contains("misses_barrier<0>"));
    CHECK_THAT(f.place.file, Contains("launch.cpp"));
    CHECK((f.place.line > 0 && f.place.column > 0));
    CHECK_THAT(e.what(), Contains("threads 8 to 15 have ended"));
  }
  m.clear_faults();
  m.settings.throws = false;
  simt::launch(misses_barrier<>, 3, 16, 0, &m, out.data());
  CHECK(m.faults().size() == 1);
}

TEST_CASE("simt: kernels' functions say so when they are called outside of a kernel") {
  CHECK_THROWS_WITH(__syncthreads(), Contains("__syncthreads") && Contains("outside of a kernel"));
  CHECK_THROWS_WITH(__shfl_sync(~0u, 1, 0), Contains("__shfl_sync"));
}

TEST_CASE("simt: without a machine a launch has one of its own") {
  std::vector<int> out(32);
  simt::launch(needs_dynamic<>, 1, 32, 128, nullptr, out.data());
  CHECK(out[0] == 31);
  CHECK_THROWS_AS(simt::launch(misses_barrier<>, 1, 16, 0, nullptr, out.data()), simt::fault_error);
}
