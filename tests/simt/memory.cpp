#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <gyre/simt.hpp>
#include <stdexcept>
#include <vector>

namespace {

namespace simt = gyre::simt;
using Catch::Matchers::Contains;

template <int = 0>
GYRE_KERNEL void write_at(int* x, int i) {
  x[i] = 7;
}
template <int = 0>
GYRE_KERNEL void add_at(int* x, int i) {
  atomicAdd(&x[i], 7);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer);
#else
constexpr bool sanitized = false;
#endif

}  // namespace

TEST_CASE("simt: fresh memory holds garbage, and large memory is sparse") {
  simt::machine m;
  auto x = m.allocate<float>(10);
  for (const float v : x) CHECK(std::isnan(v));
  auto large = m.allocate<float>(std::size_t{1} << 36);  // more than there is
  large[large.size() - 1] = 1;
  CHECK(large[0] == 0);
  simt::guarded_arena arena(m.memory(), 4096);
  CHECK(arena.take<int>(3, "three")[2] == -1);
}

TEST_CASE("simt: a stray write shows in the gaps without instrumentation") {
  if (sanitized) return;  // the address sanitizer ends the program at the write itself
  simt::machine m;
  auto x = m.allocate<int>(10, "x");
  simt::launch(write_at<>, 1, 1, 0, &m, x.data(), 9);
  CHECK_THROWS_WITH(simt::launch(write_at<>, 1, 1, 0, &m, x.data(), 10), Contains("0 bytes behind the end of 'x' of 40 bytes"));
  CHECK_THROWS_WITH(simt::launch(write_at<>, 1, 1, 0, &m, x.data(), -2), Contains("before the beginning of 'x'"));
  simt::launch(write_at<>, 1, 1, 0, &m, x.data(), 0);  // told once

  simt::guarded_arena arena(m.memory(), 8192);
  int* const first = arena.take<int>(4, "first");
  const std::size_t mark = arena.mark();
  int* const second = arena.take<int>(4, "second");
  simt::launch(write_at<>, 1, 1, 0, &m, second, 3);
  arena.release(mark);
  CHECK_THROWS_WITH(simt::launch(write_at<>, 1, 1, 0, &m, second, 3), Contains("'second', which was freed"));
  CHECK_THROWS_WITH(simt::launch(write_at<>, 1, 1, 0, &m, first, 4), Contains("'first'"));
}

TEST_CASE("simt: atomics are checked before they happen, instrumented or not") {
  simt::machine m;
  auto x = m.allocate<int>(10, "x");
  CHECK_THROWS_WITH(simt::launch(add_at<>, 1, 1, 0, &m, x.data(), 10),
                    Contains("atomicAdd of 4 bytes at global memory 0 bytes behind the end of 'x'"));
  CHECK_THROWS_WITH(simt::launch(add_at<>, 1, 1, 0, &m, static_cast<int*>(nullptr), 0), Contains("a null pointer"));
  std::vector<int> host(10);
  CHECK_THROWS_WITH(simt::launch(add_at<>, 1, 1, 0, &m, host.data(), 0), Contains("memory that is not the device's"));
}

TEST_CASE("simt: memory of the caller's own") {
  simt::machine m;
  std::vector<int> pool(100, 0);
  m.memory().add_region(pool.data(), 100 * sizeof(int));
  CHECK_THROWS_AS(m.memory().add_region(&pool[50], 8), std::logic_error);
  m.memory().add_object(&pool[10], 40, "ten");
  CHECK_THROWS_WITH(m.memory().add_object(&pool[15], 40, "more"), Contains("'more' overlaps 'ten'"));
  CHECK_THROWS_AS(m.memory().add_object(&pool[95], 40, "beyond"), std::logic_error);
  simt::launch(add_at<>, 1, 1, 0, &m, &pool[10], 9);
  CHECK(pool[19] == 7);
  CHECK_THROWS_AS(simt::launch(add_at<>, 1, 1, 0, &m, &pool[10], 10), simt::fault_error);
  m.memory().free_object(&pool[10]);
  CHECK_THROWS_WITH(simt::launch(add_at<>, 1, 1, 0, &m, &pool[10], 9), Contains("'ten', which was freed"));
  m.memory().add_object(&pool[12], 4, "one");  // a freed object makes room
  simt::launch(add_at<>, 1, 1, 0, &m, &pool[12], 0);
  m.memory().remove_region(pool.data());
  CHECK(m.memory().empty());
}

TEST_CASE("simt: an arena that is too small says by how much") {
  simt::machine m;
  simt::guarded_arena arena(m.memory(), 1024);
  CHECK_THROWS_WITH(arena.take<double>(100, "d"), Contains("'d' of 800 bytes"));
  CHECK(arena.take<double>(64, "d") != nullptr);
}
