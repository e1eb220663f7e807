// Planted faults in products, attention, routing and updates. [own_unit]
#include <gyre/parity/catch.hpp>

#include <cmath>
#include <span>

#include "planted.hpp"

namespace gyre_test {

using view = matrix_view<float>;
using input = matrix_view<const float>;

TEST_CASE("a product that ignores the accumulate flag is found", "[parity]") {
  const auto o = examine<operation::product>([](reference& b, input x, auto w, view y, bool) { b.product(x, w, y, true); });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(o.smallest["accumulate"] == 0);
  CHECK(o.smallest["rows"] == 1);
  CHECK(o.smallest["out"] == 1);
  CHECK(o.smallest["in"] == 0);
  const auto other = examine<operation::product_input_gradient>(
      [](reference& b, input dy, auto w, view dx, bool) { b.product_input_gradient(dy, w, dx, false); });
  REQUIRE_FALSE(other.passed());
  CHECK(other.smallest["accumulate"] == 1);
  CHECK(shows(other.failure, fault::tolerance));
}

TEST_CASE("a product whose sum ends before the last column is found", "[parity]") {
  const auto o = examine<operation::product>([](reference& b, input x, auto w, view y, bool accumulate) {
    w.raw.cols = x.cols / 4 * 4;  // whole vectors only
    b.product(x.columns(0, w.raw.cols), w, y, accumulate);
  });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(shows(o.failure, fault::tolerance));
  CHECK(o.smallest["in"] == 1);
}

TEST_CASE("a group that takes the row before it is found", "[parity]") {
  const auto o = examine<operation::grouped_product_weight_gradient>([](reference& b, input dy, input x,
                                                                        gyre::row_groups groups, view dw) {
    b.grouped_product_weight_gradient(dy, x, groups, dw);
    if (groups.count < 2 || groups.offsets[1] == 0 || groups.offsets[1] == x.rows) return;
    const index row = groups.offsets[1] - 1;
    b.product_weight_gradient(dy.slice(row, 1), x.slice(row, 1), view(dw.data + groups.stride, dw.rows, dw.cols, dw.stride));
  });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(o.smallest["rows"] <= 3);  // where the groups end follows from the seed
  CHECK(o.smallest["groups"] == 2);
}

TEST_CASE("attention that sees the next row is found", "[parity]") {
  const auto o = examine<operation::attention>([](reference& b, input q, input k, input v, const gyre::batch_layout& rows,
                                                  gyre::attention_shape shape, view o_, float* lse) {
    b.attention(q, k, v, rows, shape, o_, lse);
    for (const gyre::sequence_span& s : rows.sequences())
      for (index i = s.begin; i + 1 < s.begin + s.count; ++i) o_[i][0] += 1e-3F * v[i + 1][0];
  });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(o.failure.worst.output == "o");
  CHECK(o.smallest["length"] == 2);
  CHECK(o.smallest["width"] == 1);
}

TEST_CASE("a gradient of attention without the scale is found", "[parity]") {
  const auto o = examine<operation::attention_backward>(
      [](reference& b, input q, input k, input v, input o_, const float* lse, input d_o, const gyre::batch_layout& rows,
         gyre::attention_shape shape, view dq, view dk, view dv, float* workspace) {
        b.attention_backward(q, k, v, o_, lse, d_o, rows, shape, dq, dk, dv, workspace);
        for (index i = 0; i < dq.rows; ++i)
          for (index j = 0; j < dq.cols; ++j) dq[i][j] /= static_cast<float>(shape.scale);
      });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(o.failure.worst.output == "dq");
  CHECK(o.smallest["width"] == 2);
}

TEST_CASE("a cache written one position too far is found", "[parity]") {
  const auto o = examine<operation::cache_append>([](reference& b, input k, input v, const gyre::batch_layout& rows,
                                                     std::span<const gyre::cache_lane<float>> lanes, index cursor) {
    b.cache_append(k, v, rows, lanes, cursor);
    for (std::size_t n = 0; n < lanes.size(); ++n) {
      const gyre::sequence_span& s = rows.sequences()[n];
      if (s.count > 0) lanes[n].base[cursor * lanes[n].capacity + (s.past + s.count) * k.cols] = 0;
    }
  });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(shows(o.failure, fault::tolerance));
  CHECK(o.smallest["length"] == 1);
  CHECK(o.smallest["sequences"] == 1);
}

TEST_CASE("ties that go to the higher expert are found", "[parity]") {
  const auto o = examine<operation::route>([](reference& b, input scores, const float* bias, double scale, index active,
                                              std::int32_t* chosen, float* logits, float* gates) {
    b.route(scores, bias, scale, active, chosen, logits, gates);
    for (index i = 0; active == 1 && i < scores.rows; ++i)
      for (index e = chosen[i] + 1; bias == nullptr && e < scores.cols; ++e)
        if (scores[i][e] == scores[i][chosen[i]]) chosen[i] = static_cast<std::int32_t>(e);
  });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(o.failure.worst.output == "chosen");
  CHECK(o.smallest["rows"] <= 7);
}

TEST_CASE("collecting into what should have been added to is found", "[parity]") {
  const auto o = examine<operation::collect>(
      [](reference& b, input y, const std::int32_t* place, const float* gates, index active, view x) {
        b.fill(x, 0);
        b.collect(y, place, gates, active, x);
      });
  REQUIRE_FALSE(o.passed());
  CHECK(shows(o.failure, fault::tolerance));
  CHECK(o.smallest["rows"] == 1);
  CHECK(o.smallest["cols"] == 1);
}

TEST_CASE("a moment without its correction is found", "[parity]") {
  const auto o = examine<operation::adamw_update>(
      [](reference& b, float* w, const float* g, float* m, float* v, index count, gyre::adamw_numbers numbers) {
        numbers.v_correction = 1;
        b.adamw_update(w, g, m, v, count, numbers);
      });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(o.failure.worst.output == "w");
  CHECK(o.smallest["count"] == 1);
}

TEST_CASE("a sum that forgets its last term is found", "[parity]") {
  const auto o = examine<operation::squared_norm>([](reference& b, const float* x, index count, double* squares) {
    b.squared_norm(x, count > 100 ? count - 1 : count, squares);
  });
  REQUIRE_FALSE(o.passed());
  INFO(o.failure);
  CHECK(o.failure.worst.output == "squares");
  CHECK(o.smallest["count"] == 101);
}

}  // namespace gyre_test
