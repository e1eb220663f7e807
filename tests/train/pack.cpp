// Batches out of text: every row once an epoch, and resumable at every batch.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <ranges>
#include <vector>

#include <gyre/train/pack.hpp>

static_assert(std::ranges::input_range<gyre::batches>);

namespace {

std::vector<gyre::token> numbers(std::size_t count) {
  std::vector<gyre::token> text(count);
  std::iota(text.begin(), text.end(), 0);
  return text;
}
// First tokens of all rows, which are multiples of 10 here and tell the rows apart.
std::vector<gyre::token> first_tokens(gyre::batches&& source, std::size_t most = 1000) {
  std::vector<gyre::token> all;
  for (const gyre::batch& b : source) {
    for (gyre::index row = 0; row < b.rows; ++row) {
      CHECK(b.length == 9);
      for (gyre::index i = 0; i < 9; ++i) {
        const auto at = static_cast<std::size_t>(row * 9 + i);
        CHECK(b.targets[at] == b.inputs[at] + 1);
        CHECK(b.inputs[at] == b.inputs[static_cast<std::size_t>(row * 9)] + i);
      }
      all.push_back(b.inputs[static_cast<std::size_t>(row * 9)]);
    }
    if (all.size() >= most) break;
  }
  return all;
}

}  // namespace

TEST_CASE("an epoch reads every row once, in an order of its own", "[pack]") {
  const auto text = numbers(107);
  const auto two = first_tokens(gyre::pack(text, 3, 9, {.seed = gyre::seed{1}, .epochs = 2}));
  REQUIRE(two.size() == 20);
  std::vector<gyre::token> first(two.begin(), two.begin() + 10), second(two.begin() + 10, two.end());
  CHECK(first != second);
  for (auto* epoch : {&first, &second}) {
    std::sort(epoch->begin(), epoch->end());
    for (std::size_t i = 0; i < 10; ++i) CHECK((*epoch)[i] == static_cast<gyre::token>(10 * i));
  }
  CHECK(first_tokens(gyre::pack(text, 3, 9)).size() == 10);  // the last batch is smaller
  CHECK(first_tokens(gyre::pack(text, 4, 9, {.epochs = 0}), 50).size() == 52);
}

TEST_CASE("reading goes on from any position", "[pack]") {
  const auto text = numbers(107);
  const gyre::reading how{.seed = gyre::seed{1}, .epochs = 3};
  const auto all = first_tokens(gyre::pack(text, 4, 9, how));
  gyre::batches source = gyre::pack(text, 4, 9, how);
  std::size_t read = 0;
  for (const gyre::batch& b : source) {
    read += static_cast<std::size_t>(b.rows);
    const auto rest = first_tokens(gyre::pack(text, 4, 9, {gyre::seed{1}, 3, source.position()}));
    CHECK(rest == std::vector<gyre::token>(all.begin() + static_cast<std::ptrdiff_t>(read), all.end()));
  }
  CHECK(read == 30);
  CHECK(first_tokens(std::move(source)) == all);  // walked anew from its start
}

TEST_CASE("batches need at least one row", "[pack]") {
  CHECK_THROWS_WITH(gyre::pack(numbers(50), 0, 9), "batches: 0 rows to a batch; at least 1 is needed");
}
