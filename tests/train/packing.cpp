// Packed rows against their definition, and orders that can be resumed anywhere.
// [own_unit]
#include <catch2/catch.hpp>

#include <gyre/train/packing.hpp>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

using gyre::data_position;
using gyre::index;
using gyre::packed_rows;
using gyre::packing;
using gyre::row_order;
using gyre::seed;
using gyre::token;

namespace {

using documents = std::vector<std::vector<token>>;

packed_rows pack(const documents& texts, index context, packing rule) {
  std::vector<std::span<const token>> spans(texts.begin(), texts.end());
  return {spans, context, rule};
}
std::vector<token> tokens_of(std::span<const token> span) { return {span.begin(), span.end()}; }

}  // namespace

TEST_CASE("packing by hand", "[packing]") {
  const documents texts{{1, 2, 3}, {4, 5, 6, 7, 8, 9}, {10, 11}, {}, {12, 13, 14, 15}, {16}};
  const packed_rows keep = pack(texts, 3, packing::keep_tail);
  REQUIRE(keep.count() == 4);
  CHECK(tokens_of(keep[0]) == std::vector<token>{1, 2, 3, 4});
  CHECK(tokens_of(keep[1]) == std::vector<token>{5, 6, 7, 8});
  CHECK(tokens_of(keep[3]) == std::vector<token>{13, 14, 15, 16});
  CHECK(tokens_of(keep.inputs(1)) == std::vector<token>{5, 6, 7});
  CHECK(tokens_of(keep.targets(1)) == std::vector<token>{6, 7, 8});
  CHECK(keep.context() == 3);

  // 5.. of the second document and 14, 15 of the fifth are dropped; [16] is an incomplete last row.
  const packed_rows drop = pack(texts, 3, packing::drop_tail);
  REQUIRE(drop.count() == 2);
  CHECK(tokens_of(drop[0]) == std::vector<token>{1, 2, 3, 4});
  CHECK(tokens_of(drop[1]) == std::vector<token>{10, 11, 12, 13});

  const std::vector<token> one{1, 2, 3, 4, 5};
  CHECK(packed_rows(one, 1).count() == 2);
  CHECK(tokens_of(packed_rows(one, 4)[0]) == one);
}

TEST_CASE("packing keeps to its definition on random documents", "[packing]") {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    const index context = 1 + static_cast<index>(random() % 9);
    const std::size_t width = static_cast<std::size_t>(context) + 1;
    documents texts(random() % 30);
    std::vector<token> all;
    std::set<token> starts;
    token next = 0;  // every token occurs once, so that a token tells its place
    for (auto& text : texts) {
      text.resize(random() % 3 == 0 ? random() % 40 : random() % 4);
      if (!text.empty()) starts.insert(next);
      for (token& t : text) all.push_back(t = next++);
    }

    if (all.size() < width) {
      CHECK_THROWS_AS(pack(texts, context, packing::keep_tail), gyre::error);
      CHECK_THROWS_AS(pack(texts, context, packing::drop_tail), gyre::error);
      continue;
    }
    const packed_rows keep = pack(texts, context, packing::keep_tail);
    REQUIRE(static_cast<std::size_t>(keep.count()) == all.size() / width);
    for (index i = 0; i < keep.count(); ++i) {
      const auto row = tokens_of(keep[i]);
      REQUIRE(std::equal(row.begin(), row.end(), all.begin() + i * (context + 1)));
      for (std::size_t j = 0; j < width - 1; ++j) {
        REQUIRE(keep.inputs(i)[j] == row[j]);
        REQUIRE(keep.targets(i)[j] == row[j + 1]);
      }
    }

    // drop_tail, row by row: a row begins at the first document that has not begun, and takes documents whole but the last.
    std::vector<std::vector<token>> rows;
    for (std::size_t d = 0; d < texts.size();) {
      std::vector<token> row;
      while (row.size() < width && d < texts.size()) {
        row.insert(row.end(), texts[d].begin(), texts[d].end());
        ++d;
      }
      if (row.size() < width) break;
      row.resize(width);
      rows.push_back(row);
    }
    if (rows.empty()) {
      CHECK_THROWS_AS(pack(texts, context, packing::drop_tail), gyre::error);
      continue;
    }
    const packed_rows drop = pack(texts, context, packing::drop_tail);
    REQUIRE(static_cast<std::size_t>(drop.count()) == rows.size());
    for (index i = 0; i < drop.count(); ++i) {
      REQUIRE(tokens_of(drop[i]) == rows[static_cast<std::size_t>(i)]);
      REQUIRE(starts.count(drop[i][0]) == 1);
    }
  }
}

TEST_CASE("an order reads every row once per epoch, differently each time", "[packing]") {
  row_order order(50, seed{1});
  std::vector<std::vector<index>> epochs;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<index> rows;
    for (index i = 0; i < 50; ++i) {
      REQUIRE(order.position() == data_position{epoch, i});
      rows.push_back(order.next());
    }
    REQUIRE(std::set<index>(rows.begin(), rows.end()).size() == 50);
    REQUIRE(*std::min_element(rows.begin(), rows.end()) == 0);
    REQUIRE(*std::max_element(rows.begin(), rows.end()) == 49);
    for (const auto& other : epochs) CHECK(rows != other);
    epochs.push_back(rows);
  }
  row_order other(50, seed{2});
  std::vector<index> rows;
  for (index i = 0; i < 50; ++i) rows.push_back(other.next());
  CHECK(rows != epochs[0]);
}

TEST_CASE("an order resumes at any position", "[packing]") {
  row_order whole(7, seed{3});
  for (int i = 0; i < 30; ++i) {
    row_order resumed(7, seed{3}, whole.position());
    row_order ahead(7, seed{3}), copy = whole;
    ahead.seek(whole.position());
    for (int j = 0; j < 20; ++j) {
      const index row = copy.next();
      REQUIRE(row == resumed.next());
      REQUIRE(row == ahead.next());
    }
    whole.next();
  }
  row_order single(1, seed{3});
  CHECK(single.next() == 0);
  CHECK(single.position() == data_position{1, 0});
}

TEST_CASE("rows and positions that cannot be are refused with their numbers", "[packing]") {
  using Catch::Contains;
  const std::vector<token> text{1, 2, 3, 4};
  CHECK_THROWS_WITH(packed_rows(text, 0), Contains("context is 0"));
  CHECK_THROWS_WITH(packed_rows(text, -2), Contains("-2"));
  CHECK_THROWS_WITH(packed_rows(text, 4), Contains("4 tokens fill no row of 5"));
  CHECK_THROWS_WITH(packed_rows(std::span<const token>(), 4), Contains("0 tokens"));
  const packed_rows rows(text, 1);
  CHECK_THROWS_WITH(rows[2], Contains("row 2 of 2"));
  CHECK_THROWS_AS(rows.inputs(-1), gyre::error);
  CHECK_THROWS_WITH(row_order(0, seed{1}), Contains("0 rows"));
  CHECK_THROWS_WITH((row_order(5, seed{1}, {3, 5})), Contains("row 5 of epoch 3"));
  CHECK_THROWS_AS((row_order(5, seed{1}, {3, -1})), gyre::error);
}
