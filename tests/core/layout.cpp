#include <gyre/core/layout.hpp>

#include <catch2/catch.hpp>
#include <limits>

TEST_CASE("positions that no sequence can have are refused") {
  constexpr gyre::index most = std::numeric_limits<gyre::index>::max();
  gyre::batch_layout layout;
  CHECK_THROWS_WITH(layout.add(-1, 0, 0), Catch::Contains("a sequence of -1 tokens after 0"));
  CHECK_THROWS_WITH(layout.add(1, -2, 0), Catch::Contains("a sequence of 1 tokens after -2"));
  CHECK_THROWS_WITH(layout.add(4, most - 2, 0), Catch::Contains("a sequence of 4 tokens after"));
  CHECK_THROWS_WITH(layout.add(most, 1, 0), Catch::Contains("tokens after 1"));
  CHECK(layout.rows() == 0);
  layout.add(2, 7, 0);
  CHECK(layout.positions()[1] == 8);
}
