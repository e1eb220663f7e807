// Planted faults in operations on rows: each is found, named, and made small. [own_unit]
#include <gyre/parity/catch.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "planted.hpp"

namespace gyre_test {

using view = matrix_view<float>;
using input = matrix_view<const float>;

TEST_CASE("an element that is not written is found and shrunk to one row", "[parity]") {
  // The last element of rows of more than 6 columns.
  const auto o = examine<operation::copy>([](input x, view y) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < (y.cols > 6 ? y.cols - 1 : y.cols); ++j) y[i][j] = x[i][j];
  });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(shows(o.failure, fault::old_content));
  CHECK(o.smallest["rows"] == 1);
  CHECK(o.smallest["cols"] == 7);
  CHECK(o.smallest["gap"] == 0);
  CHECK(o.failure.command.find("--operation copy --type float --seed ") != std::string::npos);
}

TEST_CASE("a tail that ends one column too early is found", "[parity]") {
  const auto o = examine<operation::rms_norm>([](reference& b, input x, const float* gain, double eps, view y, float* rstd) {
    b.rms_norm(x, gain, eps, y, rstd);
    for (index i = 0; i < x.rows; ++i) {  // the statistic of all but the last column
      float squares = 0;
      for (index j = 0; j + 1 < x.cols; ++j) squares += x[i][j] * x[i][j];
      rstd[i] = 1 / std::sqrt(squares / static_cast<float>(x.cols) + static_cast<float>(eps));
    }
  });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(shows(o.failure, fault::tolerance));
  CHECK(o.failure.worst.output == "rstd");
  CHECK(o.smallest["rows"] == 1);
  CHECK(o.smallest["cols"] == 1);
}

TEST_CASE("a swapped sign is found", "[parity]") {
  const auto o = examine<operation::rotary_backward>(
      [](reference& b, view dx, std::span<const std::int32_t> positions, const float* table, gyre::rotary_shape shape) {
        b.rotary(dx, static_cast<const float*>(nullptr), positions, table, shape);  // turns on instead of back
      });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(shows(o.failure, fault::tolerance));
  CHECK(o.smallest["rows"] == 1);
  CHECK(o.smallest["heads"] == 1);
  CHECK(o.smallest["pairs"] == 1);
}

TEST_CASE("sums in an order that changes are found though each is within the tolerance", "[parity]") {
  int call = 0;
  const auto o = examine<operation::column_sum>([&call](input x, float* sum, float*) {
    const index first = ++call % 2 == 0 ? 0 : x.rows / 2;
    for (index n = 0; n < x.rows; ++n)
      for (index j = 0; j < x.cols; ++j) sum[j] += x[(first + n) % x.rows][j];
  });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(shows(o.failure, fault::not_repeatable));
  CHECK_FALSE(o.failure.repeatable_right);
  CHECK(o.failure.repeatable_left);
  CHECK(o.smallest["cols"] <= 2);
}

TEST_CASE("a write before the first and one behind the last element are found", "[parity]") {
  for (const index place : {index{-1}, index{0}}) {
    const auto o = examine<operation::fill>([place](view y, float value) {
      reference().fill(y, value);
      if (y.size() > 0) y[place < 0 ? 0 : y.rows - 1][place < 0 ? -1 : y.cols] = value;
    });
    REQUIRE_FALSE(o.passed());
    INFO(o.failure);
    CHECK(shows(o.failure, fault::outside));
    CHECK(o.smallest["rows"] == 1);
    CHECK(o.smallest["cols"] == 1);
  }
}

TEST_CASE("rows that are written as one piece are found where they are not", "[parity]") {
  const auto o = examine<operation::fill>([](view y, float value) { std::fill_n(y.data, y.size(), value); });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(shows(o.failure, fault::outside));
  CHECK(o.smallest["gap"] > 0);
  CHECK(o.smallest["rows"] == 2);
}

TEST_CASE("an input that is written is found", "[parity]") {
  const auto o = examine<operation::gated_silu>([](reference& b, input h, view a) {
    b.gated_silu(h, a);
    if (h.size() > 0) const_cast<float*>(h.data)[0] += 1;  // NOLINT: the fault
  });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(shows(o.failure, fault::input));
}

TEST_CASE("a kernel that reads its output's old content is found", "[parity]") {
  const auto o = examine<operation::embed>([](input table, std::span<const gyre::token> ids, double scale, view y) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j)
        y[i][j] = 0 * y[i][j] + static_cast<float>(scale) * table[ids[static_cast<std::size_t>(i)]][j];
  });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(shows(o.failure, fault::old_content));
}

TEST_CASE("a NaN that spreads to rows without one is found", "[parity]") {
  // A sum over all rows instead of each of its own.
  const auto o = examine<operation::standardise>([](reference& b, view y) {
    float sum = 0;
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) sum += 0 * y[i][j];
    b.standardise(y);
    for (index i = 0; i < y.rows; ++i) y[i][0] += sum;
  });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(o.smallest["special"] > 0);
  CHECK(o.smallest["rows"] == 2);
}

TEST_CASE("an exception of a kernel is a finding", "[parity]") {
  const auto o = examine<operation::add>([](reference& b, input x, view y) {
    gyre::require(x.rows < 8, "add: ", x.rows, " rows");
    b.add(x, y);
  });
  REQUIRE_FALSE(o.passed());
  CHECK(shows(o.failure, fault::thrown));
  CHECK(o.smallest["rows"] == 8);
  CHECK_THAT(o.failure.findings.front().text, Catch::Equals("add: 8 rows"));
}

TEST_CASE("the matchers tell reports apart", "[parity]") {
  const std::vector<float> x{1, 2, 3, 4};
  std::vector<float> y(4);
  reference right;
  auto wrong = parity::replace<operation::copy>(reference(), [](input, view) {});
  reference left;
  const input from(x.data(), 2, 2);
  const view to(y.data(), 2, 2);
  CHECK_THAT(parity::compare_call<operation::copy>(left, right, parity::placement{}, from, to), parity::agrees());
  const parity::report r = parity::compare_call<operation::copy>(left, wrong, parity::placement{}, from, to);
  CHECK_THAT(r, !parity::agrees());
  CHECK_THAT(r, parity::fails(fault::old_content));
  CHECK_THAT(r, !parity::fails(fault::old_content, side::left));
  CHECK_THAT(r, parity::fails(fault::tolerance));
  CHECK(r.worst.left == 1);
}

}  // namespace gyre_test
