#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include <gyre/core/arena.hpp>

TEST_CASE("an arena hands out aligned memory, gives back to a mark and remembers its peak") {
  std::vector<std::byte> storage(4096 + gyre::arena::alignment);
  void* aligned = storage.data();
  std::size_t space = storage.size();
  REQUIRE(std::align(gyre::arena::alignment, 4096, aligned, space) != nullptr);
  gyre::arena a(static_cast<std::byte*>(aligned), 4096);
  auto* first = a.take<char>(1);
  auto* second = a.take<double>(3);
  CHECK(reinterpret_cast<std::uintptr_t>(first) % gyre::arena::alignment == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(second) == reinterpret_cast<std::uintptr_t>(first) + gyre::arena::alignment);
  const std::size_t mark = a.mark();
  {
    gyre::frame f(a);
    a.take<char>(2000);
  }
  CHECK(a.mark() == mark);
  CHECK(a.peak() == 2 * gyre::arena::alignment + 2000);
  CHECK(a.take<char>(0) != nullptr);
  CHECK_THROWS_WITH(a.take<char>(4096), Catch::Contains("arena: 4096 bytes do not fit above 128 of 4096"));
  CHECK_THROWS_AS(a.take<double>(std::numeric_limits<gyre::index>::max() / 16), gyre::error);
  a.reset();
  CHECK(a.peak() == 0);
  std::memset(a.take<char>(4096), 1, 4096);
}

TEST_CASE("a counting arena keeps the same books without memory") {
  gyre::arena counted = gyre::arena::counting();
  counted.take<char>(1);
  counted.take<double>(gyre::index{1} << 40);
  CHECK(counted.peak() == gyre::arena::alignment + (std::size_t{8} << 40));
}

TEST_CASE("a record stack gives zeroed records, reuses its blocks and survives records larger than a block") {
  struct record {
    int value = 7;
  };
  gyre::record_stack records;
  const auto start = records.mark();
  record* one = records.take<record>(3);
  CHECK(one[2].value == 7);
  one[2].value = 1;
  records.release(start);
  CHECK(records.take<record>(3) == one);
  CHECK(one[2].value == 7);
  record* large = records.take<record>(100000);
  large[99999].value = 2;
  CHECK(one[0].value == 7);
  records.release(start);
  CHECK(records.take<record>(3) == one);
  CHECK(records.take<record>(100000) == large);
}
